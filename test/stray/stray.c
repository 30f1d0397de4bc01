/*
 * stray: posts what no program that means well does, an atomic operation whose result
 * is to go into inline data that is too short for it, and waits for its completion.
 *
 *   stray mlx5_0 3
 *
 * The arguments are a device and the index of a GID of its first port; -1 is for the
 * local identifier. It prints the status of the completion. Any failure ends it with
 * status 1 and a line on standard error; so does a completion that does not come
 * within ten seconds.
 *
 * This program shares no code with the rest of the repository.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void die(const char *what)
{
	fprintf(stderr, "stray: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		die(name);
	return context;
}

static void change(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	errno = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);
	if (errno)
		die("ibv_modify_qp");
}

/* connect_to_itself takes a queue pair to RTS, its own peer. */
static void connect_to_itself(struct ibv_qp *qp, int gid_index)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC };

	if (ibv_query_port(qp->context, 1, &port))
		die("ibv_query_port");
	change(qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_256;
	attr.dest_qp_num = qp->qp_num;
	attr.max_dest_rd_atomic = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.dlid = port.lid;
	if (gid_index >= 0) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
		attr.ah_attr.grh.hop_limit = 1;
		if (ibv_query_gid(qp->context, 1, gid_index, &attr.ah_attr.grh.dgid))
			die("ibv_query_gid");
	}
	change(qp, &attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);

	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.max_rd_atomic = 1;
	change(qp, &attr, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int main(int argc, char **argv)
{
	static uint64_t memory[2];
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	time_t end;

	if (argc != 3) {
		fprintf(stderr, "usage: stray DEVICE GID-INDEX\n");
		return 1;
	}
	context = open_device(argv[1]);
	if (!(pd = ibv_alloc_pd(context)))
		die("ibv_alloc_pd");
	if (!(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC)))
		die("ibv_reg_mr");
	if (!(cq = ibv_create_cq(context, 4, NULL, NULL, 0)))
		die("ibv_create_cq");
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8 },
	};
	if (!(qp = ibv_create_qp(pd, &init)))
		die("ibv_create_qp");
	connect_to_itself(qp, atoi(argv[2]));

	struct ibv_sge element = { .addr = (uintptr_t)&memory[1], .length = 4, .lkey = mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &element, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
		.wr.atomic = { .remote_addr = (uintptr_t)memory, .compare_add = 1, .rkey = mr->rkey },
	}, *bad;
	errno = ibv_post_send(qp, &request, &bad);
	if (errno)
		die("ibv_post_send");
	for (end = time(NULL) + 10; time(NULL) < end;) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			die("ibv_poll_cq");
		if (n > 0) {
			puts(ibv_wc_status_str(wc.status));
			/* The end of the process destroys everything. */
			return 0;
		}
	}
	errno = ETIMEDOUT;
	die("the completion");
}
