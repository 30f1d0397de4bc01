// The promises of the libibverbs man pages that Soft-RoCE of Linux 6.1 breaks,
// each shown by the shortest sequence of verbs that proves it:
//
//	cc -o violations violations.c -libverbs && ./violations rxe0
//
// It prints the name of each contract (docs/contracts.md) that it saw violated,
// and what it saw. It shares nothing with the exporter, whose verdicts a test
// compares with its own.
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *must(void *p, const char *what)
{
	if (!p) {
		perror(what);
		exit(2);
	}
	return p;
}

static void must0(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "%s: %s\n", what, strerror(ret > 0 ? ret : -ret));
		exit(2);
	}
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *ctx = NULL;

	for (struct ibv_device **d = list; *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			ctx = must(ibv_open_device(*d), "ibv_open_device");
	ibv_free_device_list(list);
	if (!ctx)
		fprintf(stderr, "there is no device %s\n", name), exit(2);
	return ctx;
}

static struct ibv_qp_init_attr qp_attr(struct ibv_cq *cq, enum ibv_qp_type type, struct ibv_srq *srq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = type, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
	};
}

static void srq_reports_actual(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr create = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr query = { 0 };
	struct ibv_srq *srq = must(ibv_create_srq(pd, &create), "ibv_create_srq");

	must0(ibv_query_srq(srq, &query), "ibv_query_srq");
	if (create.attr.max_wr != query.max_wr)
		printf("srq_reports_actual: asked for max_wr 16, ibv_create_srq wrote back %u, ibv_query_srq says %u\n",
		       create.attr.max_wr, query.max_wr);
	must0(ibv_destroy_srq(srq), "ibv_destroy_srq");
}

static uint32_t limit_after(struct ibv_pd *pd, uint32_t limit)
{
	struct ibv_srq_init_attr create = { .attr = { .max_wr = 16, .max_sge = 1, .srq_limit = limit } };
	struct ibv_srq_attr query = { 0 };
	struct ibv_srq *srq = must(ibv_create_srq(pd, &create), "ibv_create_srq");

	must0(ibv_query_srq(srq, &query), "ibv_query_srq");
	must0(ibv_destroy_srq(srq), "ibv_destroy_srq");
	return query.srq_limit;
}

static void srq_limit_ignored(struct ibv_pd *pd)
{
	uint32_t without = limit_after(pd, 0), with = limit_after(pd, 8);

	if (without != with)
		printf("srq_limit_ignored: created with srq_limit 0, ibv_query_srq says %u; created with 8, it says %u\n",
		       without, with);
}

static void qp_reports_actual(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr create = qp_attr(cq, IBV_QPT_RC, NULL), ignored;
	struct ibv_qp_attr query = { 0 };
	struct ibv_qp *qp = must(ibv_create_qp(pd, &create), "ibv_create_qp");

	must0(ibv_query_qp(qp, &query, IBV_QP_CAP, &ignored), "ibv_query_qp");
	if (create.cap.max_send_wr != query.cap.max_send_wr)
		printf("qp_reports_actual: asked for max_send_wr 16, ibv_create_qp wrote back %u, ibv_query_qp says %u\n",
		       create.cap.max_send_wr, query.cap.max_send_wr);
	must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
}

static void qp_srq_type_restricted(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = must(ibv_create_srq(pd, &attr), "ibv_create_srq");
	struct ibv_qp_init_attr create = qp_attr(cq, IBV_QPT_UC, srq);
	struct ibv_qp *qp = ibv_create_qp(pd, &create);

	if (qp) {
		printf("qp_srq_type_restricted: ibv_create_qp of a UC queue pair with an SRQ succeeded\n");
		must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	}
	must0(ibv_destroy_srq(srq), "ibv_destroy_srq");
}

static void notify_solicited_delivers_errors(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_comp_channel *ch = must(ibv_create_comp_channel(ctx), "ibv_create_comp_channel");
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, ch, 0), "ibv_create_cq"), *from;
	struct ibv_qp_init_attr create = qp_attr(cq, IBV_QPT_RC, NULL);
	struct ibv_qp *qp = must(ibv_create_qp(pd, &create), "ibv_create_qp");
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, error = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct pollfd readable = { .fd = ch->fd, .events = POLLIN };
	struct ibv_wc wc;
	void *context;
	int n = 0;

	must0(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	must0(ibv_modify_qp(qp, &error, IBV_QP_STATE), "to ERR");
	must0(ibv_req_notify_cq(cq, 1), "ibv_req_notify_cq");
	must0(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	if (poll(&readable, 1, 2000) == 1) {
		must0(ibv_get_cq_event(ch, &from, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(from, 1);
	} else {
		n = ibv_poll_cq(cq, 1, &wc);
	}
	if (n == 1 && wc.status != IBV_WC_SUCCESS)
		printf("notify_solicited_delivers_errors: a send completed with \"%s\", without an event within 2 s\n",
		       ibv_wc_status_str(wc.status));
	must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
	must0(ibv_destroy_comp_channel(ch), "ibv_destroy_comp_channel");
}

// Whether the queue was resized; a device need not do it.
static int resized(struct ibv_cq *cq, int cqe)
{
	int ret = ibv_resize_cq(cq, cqe);

	if (ret && ret != EOPNOTSUPP && ret != ENOSYS)
		must0(ret, "ibv_resize_cq");
	return !ret;
}

static void cq_resize_at_least_requested(struct ibv_context *ctx)
{
	static const int sizes[] = { 17, 33, 100, 255, 256, 257, 20, 3 };
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, NULL, 0), "ibv_create_cq");

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (resized(cq, sizes[i]) && cq->cqe < sizes[i]) {
			printf("cq_resize_at_least_requested: resized to %d, the queue has %d\n", sizes[i], cq->cqe);
			break;
		}
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

// A queue pair whose sends complete at once, as flushed.
static struct ibv_qp *flushing(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr create = qp_attr(cq, IBV_QPT_RC, NULL);
	struct ibv_qp *qp = must(ibv_create_qp(pd, &create), "ibv_create_qp");
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, error = { .qp_state = IBV_QPS_ERR };

	must0(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	must0(ibv_modify_qp(qp, &error, IBV_QP_STATE), "to ERR");
	return qp;
}

static void flush(struct ibv_qp *qp, uint64_t id)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	must0(ibv_post_send(qp, &wr, &bad), "ibv_post_send");
}

static void cq_resize_too_small_refused(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp *qp;

	if (resized(cq, 32)) {
		qp = flushing(pd, cq);
		flush(qp, 1);
		flush(qp, 2);
		sleep(1);
		if (!ibv_resize_cq(cq, 1) && cq->cqe < 2)
			printf("cq_resize_too_small_refused: with 2 completions in it, resized to %d\n", cq->cqe);
		must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	}
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

static void cq_resize_keeps_completions(struct ibv_context *ctx, struct ibv_pd *pd)
{
	static const int sizes[] = { 0, 64, 16 };
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, NULL, 0), "ibv_create_cq");
	struct ibv_qp *qp;
	struct ibv_wc wc[8];
	uint64_t id = 0;
	int i, n;

	if (resized(cq, 16)) {
		qp = flushing(pd, cq);
		for (i = 0; i < 3; i++) {
			if (sizes[i])
				resized(cq, sizes[i]);
			flush(qp, ++id);
			flush(qp, ++id);
			usleep(200000);
		}
		n = ibv_poll_cq(cq, 8, wc);
		for (i = 0; i < n && wc[i].wr_id == (uint64_t)i + 1; i++)
			;
		if (n != (int)id || i != n)
			printf("cq_resize_keeps_completions: of %d completions %d were polled, %d of them in order\n", (int)id, n, i);
		must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	}
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		fprintf(stderr, "usage: %s DEVICE\n", argv[0]), exit(2);
	struct ibv_context *ctx = open_device(argv[1]);
	struct ibv_pd *pd = must(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, NULL, 0), "ibv_create_cq");

	srq_reports_actual(pd);
	srq_limit_ignored(pd);
	cq_resize_at_least_requested(ctx);
	cq_resize_too_small_refused(ctx, pd);
	cq_resize_keeps_completions(ctx, pd);
	qp_reports_actual(pd, cq);
	qp_srq_type_restricted(pd, cq);
	notify_solicited_delivers_errors(ctx, pd);
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
	must0(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must0(ibv_close_device(ctx), "ibv_close_device");
	return 0;
}
