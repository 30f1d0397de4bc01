/* Data moved as fast as possible for a while, in one crossing into C. See verbs.BandwidthRun. */
#ifndef RDMA_EXPORTER_SHIM_BANDWIDTH_H
#define RDMA_EXPORTER_SHIM_BANDWIDTH_H

#include "shim_measure.h"

enum { SHIM_MAX_PAIRS = 4, SHIM_MAX_WINDOW = 128 };

struct shim_bandwidth {
	/* What to move. Times are nanoseconds. The key of remote is the rkey. */
	int nqp, size, window, batch, read, flags;
	struct ibv_sge local, remote;
	int64_t duration, drain, bytes;
	/* What was moved, and the verb that failed, if err is not 0. */
	int64_t messages, elapsed, posting, draining;
	int status, verb, err;
};

/* All queue pairs post the same lists. The last of a list completes, with their index. */
struct shim_pump {
	struct shim_bandwidth *b;
	const int64_t *stop;
	uint64_t *in, calls; /* as in struct shim_run */
	int64_t posted, posted_at, completed_at;
	struct ibv_send_wr wrs[SHIM_MAX_WINDOW];
	struct ibv_sge sges[SHIM_MAX_WINDOW];
	int next[SHIM_MAX_PAIRS], room[SHIM_MAX_PAIRS]; /* room is in lists */
};

static inline int shim_may_post(const struct shim_pump *p)
{
	return !__atomic_load_n(p->stop, __ATOMIC_ACQUIRE) && (p->posted + p->b->batch) * p->b->size <= p->b->bytes;
}

/* Posts a list on each queue pair that has room. */
static inline int shim_post_lists(struct shim_pump *p, struct ibv_qp *const *qps)
{
	struct shim_bandwidth *b = p->b;
	struct ibv_send_wr *bad;
	int q, ret = 0;

	b->verb = SHIM_POST_SEND;
	for (q = 0; q < b->nqp && !ret && shim_may_post(p); q++) {
		if (!p->room[q])
			continue;
		p->wrs[p->next[q] + b->batch - 1].wr_id = (uint64_t)q;
		p->posted_at = shim_now();
		SHIM_IN(p, SHIM_POST_SEND, ret = ibv_post_send(qps[q], &p->wrs[p->next[q]], &bad));
		p->room[q]--;
		p->next[q] = (p->next[q] + b->batch) % b->window;
		p->posted += b->batch;
	}
	return shim_errno(ret);
}

/* Moves data until nothing is outstanding or something failed. */
static inline int shim_move(struct shim_pump *p, struct ibv_qp *const *qps, struct ibv_cq *cq)
{
	int64_t now = shim_now(), end = now + p->b->duration, late = INT64_MAX;
	struct ibv_wc wc[16];
	int n, i, ret;

	for (;; now = shim_now()) {
		if (now < end && shim_may_post(p)) {
			if ((ret = shim_post_lists(p, qps)))
				return ret;
		} else if (p->posted == p->b->messages) {
			return 0;
		} else if (late == INT64_MAX) {
			late = now + p->b->drain;
		}
		p->b->verb = SHIM_POLL_CQ;
		SHIM_IN(p, SHIM_POLL_CQ, n = ibv_poll_cq(cq, 16, wc));
		if (n < 0 || (n == 0 && now >= late))
			return n ? shim_errno(n) : ETIMEDOUT;
		for (i = 0; i < n; i++) {
			if ((p->b->status = (int)wc[i].status) || wc[i].wr_id >= (uint64_t)p->b->nqp)
				return 0;
			p->room[wc[i].wr_id]++;
			p->b->messages += p->b->batch;
			p->completed_at = shim_now();
		}
	}
}

static inline void shim_bandwidth(struct shim_bandwidth *b, struct ibv_qp *const *qps, struct ibv_cq *cq,
				  const int64_t *stop, uint64_t *in)
{
	struct shim_pump p = { .b = b, .stop = stop, .in = in };
	uint64_t size = (uint64_t)b->size;
	int64_t start, at;
	int i, last;

	for (i = 0; i < b->nqp; i++)
		p.room[i] = b->window / b->batch;
	for (i = 0; i < b->window; i++) {
		last = i % b->batch == b->batch - 1;
		p.sges[i] = b->local;
		p.sges[i].addr += (uint64_t)i % (b->local.length / size) * size;
		p.sges[i].length = (uint32_t)size;
		p.wrs[i] = (struct ibv_send_wr){ .sg_list = &p.sges[i], .num_sge = 1, .next = last ? NULL : &p.wrs[i + 1] };
		p.wrs[i].opcode = b->read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
		p.wrs[i].send_flags = (unsigned int)b->flags | (last ? IBV_SEND_SIGNALED : 0);
		p.wrs[i].wr.rdma.remote_addr = b->remote.addr + (uint64_t)i % (b->remote.length / size) * size;
		p.wrs[i].wr.rdma.rkey = b->remote.lkey;
	}
	start = p.completed_at = shim_now();
	b->err = shim_move(&p, qps, cq);
	at = __atomic_load_n(stop, __ATOMIC_ACQUIRE);
	b->elapsed = p.completed_at - start;
	b->posting = at && p.posted_at > at ? p.posted_at - at : 0;
	b->draining = at && p.completed_at > at ? p.completed_at - at : 0;
}

#endif
