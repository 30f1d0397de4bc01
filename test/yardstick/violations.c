// The promises of the libibverbs man pages that Soft-RoCE of Linux 6.1 breaks,
// each shown by the shortest sequence of verbs that proves it:
//
//	cc -o violations violations.c -libverbs && ./violations rxe0
//
// It prints the name of each contract (docs/reference/contracts.md) that it saw violated,
// and what it saw. It shares nothing with the exporter, whose verdicts a test
// compares with its own.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common.h"

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

static void notify_solicited_delivers_errors(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_comp_channel *ch = must(ibv_create_comp_channel(ctx), "ibv_create_comp_channel");
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, ch, 0), "ibv_create_cq"), *from;
	struct ibv_qp *qp = flushing(pd, cq);
	struct pollfd readable = { .fd = ch->fd, .events = POLLIN };
	struct ibv_wc wc;
	void *context;
	int n = 0;

	must0(ibv_req_notify_cq(cq, 1), "ibv_req_notify_cq");
	flush(qp, 1);
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
	static const int sizes[] = { 100, 17, 33, 255, 256, 257, 20, 3 };
	struct ibv_cq *cq = must(ibv_create_cq(ctx, 16, NULL, NULL, 0), "ibv_create_cq");

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		if (resized(cq, sizes[i]) && cq->cqe < sizes[i]) {
			printf("cq_resize_at_least_requested: resized to %d, the queue has %d\n", sizes[i], cq->cqe);
			break;
		}
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
}

// An extended completion queue, if the library has such, with timestamps if the device has:
// its sizes, and two flushed sends read from it.
static void cq_ex_at_least_requested(struct ibv_context *ctx, struct ibv_pd *pd)
{
	static const int sizes[] = { 256, 100, 17 };
	struct ibv_device_attr_ex attr = { 0 };
	struct ibv_cq_init_attr_ex init = { .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr batch = { 0 };
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;
	uint64_t id;

	must0(ibv_query_device_ex(ctx, NULL, &attr), "ibv_query_device_ex");
	if (attr.completion_timestamp_mask)
		init.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		init.cqe = sizes[i];
		cq = ibv_create_cq_ex(ctx, &init);
		if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS))
			return;
		must(cq, "ibv_create_cq_ex");
		if (cq->cqe < sizes[i])
			printf("cq_ex_at_least_requested: asked for %d, the queue has %d\n", sizes[i], cq->cqe);
		must0(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "ibv_destroy_cq");
	}
	cq = must(ibv_create_cq_ex(ctx, &init), "ibv_create_cq_ex");
	qp = flushing(pd, ibv_cq_ex_to_cq(cq));
	for (id = 1; id <= 2; id++) {
		flush(qp, id);
		usleep(200000);
	}
	must0(ibv_start_poll(cq, &batch), "ibv_start_poll");
	for (id = 1; id <= 2; id++) {
		if (cq->wr_id != id || cq->status == IBV_WC_SUCCESS || ibv_wc_read_qp_num(cq) != qp->qp_num)
			printf("cq_ex_at_least_requested: completion %d of the queue pair %u: wr_id %d, qp_num %u\n", (int)id,
			       qp->qp_num, (int)cq->wr_id, ibv_wc_read_qp_num(cq));
		if (ibv_next_poll(cq) && id < 2)
			printf("cq_ex_at_least_requested: one completion of two was polled\n"), id = 2;
	}
	ibv_end_poll(cq);
	must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	must0(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "ibv_destroy_cq");
}

// Two completions that wait are polled as one batch, to its end.
static void cq_ex_batch_keeps_completions(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &init);
	struct ibv_poll_cq_attr batch = { 0 };
	struct ibv_qp *qp;
	int n = 0;

	if (!cq && (errno == EOPNOTSUPP || errno == ENOSYS))
		return;
	must(cq, "ibv_create_cq_ex");
	qp = flushing(pd, ibv_cq_ex_to_cq(cq));
	flush(qp, 1);
	flush(qp, 2);
	usleep(500000);
	must0(ibv_start_poll(cq, &batch), "ibv_start_poll");
	do
		n++;
	while (!ibv_next_poll(cq));
	ibv_end_poll(cq);
	if (n != 2 || ibv_start_poll(cq, &batch) != ENOENT)
		printf("cq_ex_batch_keeps_completions: of 2 completions %d were polled; then the queue is %s\n", n,
		       n == 2 ? "not empty" : "not looked at");
	must0(ibv_destroy_qp(qp), "ibv_destroy_qp");
	must0(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), "ibv_destroy_cq");
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

// The events of the limit of a shared receive queue that come within so many milliseconds
// of each other.
static int limit_events(struct ibv_context *ctx, struct ibv_srq *srq, int ms)
{
	struct pollfd readable = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int n = 0;

	while (poll(&readable, 1, ms) == 1 && !ibv_get_async_event(ctx, &event)) {
		n += event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == srq;
		ibv_ack_async_event(&event);
	}
	return n;
}

// The index of a GID with which the port reaches itself, or -1.
static int own_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
	struct ibv_gid_entry e;
	int found = -1;

	for (int i = 0; i < 16; i++)
		if (!ibv_query_gid_ex(ctx, 1, i, &e, 0) && e.gid_type == IBV_GID_TYPE_ROCE_V2) {
			found = i;
			*gid = e.gid;
		}
	return found;
}

static void ready(struct ibv_qp *qp, uint32_t peer, const union ibv_gid *gid, int index)
{
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .dgid = *gid, .sgid_index = index, .hop_limit = 64 } },
	};
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1 };

	must0(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "to INIT");
	must0(ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), "to RTR");
	must0(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			    IBV_QP_MAX_QP_RD_ATOMIC), "to RTS");
}

static void take(struct ibv_qp *from, struct ibv_cq *cq, int n)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	for (; n > 0; n--) {
		must0(ibv_post_send(from, &wr, &bad), "ibv_post_send");
		for (int got = 0; got < 2;) // of the send, and of the receive
			if (ibv_poll_cq(cq, 1, &wc) == 1) {
				must0(wc.status, "a message");
				got++;
			}
	}
}

static void post(struct ibv_srq *srq, int n)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	for (; n > 0; n--)
		must0(ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

static void srq_limit(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = 2 }, told = { 0 };
	struct ibv_qp_init_attr with, without = qp_attr(cq, IBV_QPT_RC, NULL);
	struct ibv_port_attr port;
	struct ibv_qp *from, *to;
	struct ibv_srq *srq;
	union ibv_gid gid;
	int index, early, in_time, again;

	must0(ibv_query_port(ctx, 1, &port), "ibv_query_port");
	index = own_gid(ctx, &gid);
	if (port.state != IBV_PORT_ACTIVE || index < 0)
		return;
	srq = must(ibv_create_srq(pd, &attr), "ibv_create_srq");
	with = qp_attr(cq, IBV_QPT_RC, srq);
	from = must(ibv_create_qp(pd, &without), "ibv_create_qp");
	to = must(ibv_create_qp(pd, &with), "ibv_create_qp");
	ready(to, from->qp_num, &gid, index);
	ready(from, to->qp_num, &gid, index);
	post(srq, 4);
	must0(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), "ibv_modify_srq");
	must0(fcntl(ctx->async_fd, F_SETFL, fcntl(ctx->async_fd, F_GETFL) | O_NONBLOCK), "fcntl");
	take(from, cq, 2);
	early = limit_events(ctx, srq, 300);
	take(from, cq, 1);
	in_time = limit_events(ctx, srq, 1000);
	if (early || in_time != 1)
		printf("srq_limit_event: srq_limit 2: %d events with 2 receives left, %d with 1\n", early, in_time);
	take(from, cq, 1);
	must0(ibv_query_srq(srq, &told), "ibv_query_srq");
	post(srq, 4);
	take(from, cq, 4);
	again = limit_events(ctx, srq, 300);
	if (again || told.srq_limit)
		printf("srq_limit_disarmed: after the event ibv_query_srq says srq_limit %u, and %d events more come\n", told.srq_limit, again);
	must0(ibv_destroy_qp(from), "ibv_destroy_qp");
	must0(ibv_destroy_qp(to), "ibv_destroy_qp");
	must0(ibv_destroy_srq(srq), "ibv_destroy_srq");
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
	cq_ex_at_least_requested(ctx, pd);
	cq_ex_batch_keeps_completions(ctx, pd);
	cq_resize_at_least_requested(ctx);
	cq_resize_too_small_refused(ctx, pd);
	cq_resize_keeps_completions(ctx, pd);
	if (ctx->device->transport_type == IBV_TRANSPORT_IB)
		srq_limit(ctx, pd, cq);
	qp_reports_actual(pd, cq);
	qp_srq_type_restricted(pd, cq);
	notify_solicited_delivers_errors(ctx, pd);
	must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
	must0(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must0(ibv_close_device(ctx), "ibv_close_device");
	return 0;
}
