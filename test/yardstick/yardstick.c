/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yardstick: how long a completion takes to reach a process, measured with
 * libibverbs alone. It was written from the manual pages and shares no code with
 * the exporter, so that the exporter's figures can be held against it:
 * make bench does so. By hand:
 *
 *	cc -O2 -o yardstick yardstick.c -libverbs
 *	./yardstick -d rxe0 -n 1000
 *	./yardstick -d rxe0 -n 1000 -t 500 loopback_any flush_poll
 *
 * The loops:
 *
 *	loopback_any	an 8-byte message from one RC queue pair of port 1 to another,
 *			whose completion queue is armed for any completion. Measured
 *			is the time from before ibv_post_send to after
 *			ibv_get_cq_event, which poll(2) with a deadline comes before.
 *	loopback_poll	the same, to after the ibv_poll_cq that returned the
 *			completion of the receive.
 *	flush_any	a send to a queue pair in the error state, which completes at
 *			once as flushed; to after ibv_get_cq_event.
 *	flush_poll	the same, to after the ibv_poll_cq that returned it.
 *
 * Each loop prints one line of JSON; times are nanoseconds. The exit status is 0 if
 * every loop had all its samples.
 */
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PORT 1
#define MESSAGE 8
#define ENTRIES 16
#define MS INT64_C(1000000)

static const char *device = "rxe0";
static int samples = 1000, warmup = 100, deadline_ms = 1000;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* What was found in one loop. */
struct tally {
	int64_t *ns;
	int n;
	int missed;	  /* the completion was there, but no event by the deadline */
	int spurious;	  /* an event without a completion */
	int missing;	  /* no completion by the deadline */
	int unsuccessful; /* a completion with another status than it should have */
};

static struct tally missing(struct tally t)
{
	t.missing++;
	return t;
}

static int ascending(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void print(const char *loop, struct tally *t)
{
	qsort(t->ns, t->n, sizeof(*t->ns), ascending);
	printf("{\"loop\":\"%s\",\"samples\":%d,\"median\":%" PRId64 ""
	       ",\"missed\":%d,\"spurious\":%d,\"missing\":%d,\"unsuccessful\":%d}\n",
	       loop, t->n, t->n ? t->ns[(t->n - 1) / 2] : 0, t->missed, t->spurious, t->missing, t->unsuccessful);
	fflush(stdout);
}

/* How the port is addressed from itself. */
static struct ibv_ah_attr address(struct ibv_context *ctx, const struct ibv_port_attr *port)
{
	struct ibv_ah_attr ah = { .port_num = PORT, .dlid = port->lid };
	int i, best = -1, rank = -1;

	if (port->link_layer == IBV_LINK_LAYER_INFINIBAND)
		return ah;
	for (i = 0; i < port->gid_tbl_len; i++) {
		static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
		struct ibv_gid_entry e;
		int r;

		if (ibv_query_gid_ex(ctx, PORT, i, &e, 0))
			continue;
		r = 2 * (e.gid_type == IBV_GID_TYPE_ROCE_V2) + !memcmp(e.gid.raw, mapped, sizeof(mapped));
		if (r > rank) {
			rank = r;
			best = i;
			ah.grh.dgid = e.gid;
		}
	}
	if (best < 0)
		die("the port has no GID", EADDRNOTAVAIL);
	ah.is_global = 1;
	ah.grh.sgid_index = best;
	ah.grh.hop_limit = 64;
	return ah;
}

/* A queue pair with completion queues for what it sends and what it receives. */
struct end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *sent, *received;
	struct ibv_qp *qp;
};

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	must0(ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE), "ibv_modify_qp");
}

/* The event channel is that of the completion queue that is measured. */
static struct end create_end(struct ibv_context *ctx, struct ibv_pd *pd, bool tell_sent)
{
	struct end e;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	e.channel = must(ibv_create_comp_channel(ctx), "ibv_create_comp_channel");
	e.sent = must(ibv_create_cq(ctx, ENTRIES, NULL, tell_sent ? e.channel : NULL, 0), "ibv_create_cq");
	e.received = must(ibv_create_cq(ctx, ENTRIES, NULL, tell_sent ? NULL : e.channel, 0), "ibv_create_cq");
	init.send_cq = e.sent;
	init.recv_cq = e.received;
	e.qp = must(ibv_create_qp(pd, &init), "ibv_create_qp");
	modify(e.qp, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE,
	}, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	return e;
}

static void connect_end(struct end *e, const struct end *peer, struct ibv_ah_attr ah, enum ibv_mtu mtu)
{
	modify(e->qp, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .ah_attr = ah, .path_mtu = mtu, .dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
	}, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	   IBV_QP_MIN_RNR_TIMER);
	modify(e->qp, (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1,
	}, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void destroy_end(struct end *e)
{
	must0(ibv_destroy_qp(e->qp), "ibv_destroy_qp");
	must0(ibv_destroy_cq(e->sent), "ibv_destroy_cq");
	must0(ibv_destroy_cq(e->received), "ibv_destroy_cq");
	must0(ibv_destroy_comp_channel(e->channel), "ibv_destroy_comp_channel");
}

/* Polls until there is a completion, or the time is over; looks at least once. */
static bool take_completion(struct ibv_cq *cq, int64_t until, struct ibv_wc *wc, int64_t *at)
{
	for (;;) {
		int n = ibv_poll_cq(cq, 1, wc);

		*at = now();
		if (n < 0)
			die("ibv_poll_cq", EIO);
		if (n > 0 || *at >= until)
			return n > 0;
	}
}

/* Waits for an event and acknowledges it, if one comes in time. */
static bool take_event(struct ibv_comp_channel *channel, int64_t *at)
{
	int64_t until = now() + deadline_ms * MS;
	int ready, left = deadline_ms;
	struct ibv_cq *cq;
	void *context;

	do {
		struct pollfd p = { .fd = channel->fd, .events = POLLIN };

		ready = poll(&p, 1, left);
		if (ready < 0 && errno != EINTR)
			die("poll", errno);
		if (ready < 0) {
			left = (int)((until - now()) / 1000000);
			left = left < 0 ? 0 : left;
		}
	} while (ready < 0);
	if (!ready)
		return false;
	must0(ibv_get_cq_event(channel, &cq, &context), "ibv_get_cq_event");
	*at = now();
	ibv_ack_cq_events(cq, 1);
	return true;
}

/*
 * Takes the samples: a message from one end to the other if there are two, or
 * else a send that is flushed. A completion that does not come, or comes with
 * another status than it should, ends it.
 */
static struct tally run(struct end *from, struct end *to, struct ibv_mr *mr, bool events)
{
	struct ibv_comp_channel *channel = to ? to->channel : from->channel;
	struct ibv_cq *cq = to ? to->received : from->sent;
	enum ibv_wc_status want = to ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR;
	struct ibv_sge out = { .addr = (uintptr_t)mr->addr, .length = MESSAGE, .lkey = mr->lkey };
	struct ibv_sge in = { .addr = (uintptr_t)mr->addr + 64, .length = MESSAGE, .lkey = mr->lkey };
	struct ibv_send_wr send = {
		.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad_send;
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct tally t = { .ns = must(calloc(samples, sizeof(*t.ns)), "calloc") };
	int i;

	for (i = 0; i < warmup + samples; i++) {
		int64_t start, until, end, polled;
		bool told = true;
		struct ibv_wc wc;

		if (to)
			must0(ibv_post_recv(to->qp, &recv, &bad_recv), "ibv_post_recv");
		if (events)
			must0(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
		start = now();
		until = start + deadline_ms * MS;
		must0(ibv_post_send(from->qp, &send, &bad_send), "ibv_post_send");
		if (events) {
			told = take_event(channel, &end);
			if (!take_completion(cq, 0, &wc, &polled)) {
				if (told)
					t.spurious++;
				told = false;
				if (!take_completion(cq, until, &wc, &polled))
					return missing(t);
			} else if (!told) {
				t.missed++;
			}
		} else if (!take_completion(cq, until, &wc, &end)) {
			return missing(t);
		}
		if (wc.status == want && to && !take_completion(from->sent, now() + deadline_ms * MS, &wc, &polled))
			return missing(t);
		if (wc.status != want) {
			t.unsuccessful++;
			return t;
		}
		if (told && i >= warmup)
			t.ns[t.n++] = end - start;
	}
	return t;
}

static bool measure(struct ibv_context *ctx, const char *loop)
{
	bool loopback = !strncmp(loop, "loopback", 8), events = strstr(loop, "_any");
	struct ibv_pd *pd = must(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	struct end from, to;
	struct tally t;
	struct ibv_mr *mr;
	void *buf = NULL;

	must0(posix_memalign(&buf, sysconf(_SC_PAGESIZE), 4096), "posix_memalign");
	mr = must(ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
	from = create_end(ctx, pd, !loopback);
	if (loopback) {
		struct ibv_port_attr port;
		struct ibv_ah_attr ah;

		must0(ibv_query_port(ctx, PORT, &port), "ibv_query_port");
		ah = address(ctx, &port);
		to = create_end(ctx, pd, false);
		connect_end(&to, &from, ah, port.active_mtu);
		connect_end(&from, &to, ah, port.active_mtu);
	} else {
		modify(from.qp, (struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, 0);
	}
	t = run(&from, loopback ? &to : NULL, mr, events);
	print(loop, &t);
	free(t.ns);
	destroy_end(&from);
	if (loopback)
		destroy_end(&to);
	must0(ibv_dereg_mr(mr), "ibv_dereg_mr");
	free(buf);
	must0(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	return t.n == samples;
}

static int usage(void)
{
	fprintf(stderr, "usage: yardstick [-d device] [-n samples] [-w warm-up] [-t deadline in ms] [loop ...]\n"
			"loops: loopback_any loopback_poll flush_any flush_poll\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const char *const loops[] = { "loopback_any", "loopback_poll", "flush_any", "flush_poll", NULL };
	const char *const *chosen = loops;
	struct ibv_context *ctx;
	bool all = true;
	int opt, i, j;

	while ((opt = getopt(argc, argv, "d:n:w:t:")) != -1) {
		switch (opt) {
		case 'd': device = optarg; break;
		case 'n': samples = atoi(optarg); break;
		case 'w': warmup = atoi(optarg); break;
		case 't': deadline_ms = atoi(optarg); break;
		default: return usage();
		}
	}
	if (samples < 1 || samples > 1000000 || warmup < 0 || warmup > 1000000 || deadline_ms < 1)
		return usage();
	if (optind < argc)
		chosen = (const char *const *)argv + optind;
	for (i = 0; chosen[i]; i++) {
		for (j = 0; loops[j] && strcmp(loops[j], chosen[i]); j++)
			;
		if (!loops[j])
			return usage();
	}
	ctx = open_device(device);
	for (i = 0; chosen[i]; i++)
		all &= measure(ctx, chosen[i]);
	must0(ibv_close_device(ctx), "ibv_close_device");
	return all ? 0 : 1;
}
