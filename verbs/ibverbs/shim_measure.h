/*
 * Samples of how long completions take to reach the process, taken in one
 * crossing into C: no scheduler but the kernel's is in the figures, and the clock
 * is read next to the calls. See verbs.Measurement and verbs.Samples for what is
 * measured and what is counted.
 */
#ifndef RDMA_EXPORTER_SHIM_MEASURE_H
#define RDMA_EXPORTER_SHIM_MEASURE_H

#include <limits.h>
#include <poll.h>

#include "shim.h"

/* The verbs of a measurement. */
enum shim_verb {
	SHIM_NO_VERB,
	SHIM_POST_RECV,
	SHIM_REQ_NOTIFY_CQ,
	SHIM_POST_SEND,
	SHIM_GET_CQ_EVENT,
	SHIM_ACK_CQ_EVENTS,
	SHIM_POLL_CQ,
	SHIM_MODIFY_QP,
};

/* Why a measurement ended, as verbs.Stop numbers it. */
enum shim_stop {
	SHIM_STOP_NONE,
	SHIM_STOP_BUDGET,
	SHIM_STOP_MISSED,
	SHIM_STOP_MISSING,
	SHIM_STOP_UNSUCCESSFUL,
};

/* See struct shim_run. */
#define SHIM_VERB_BITS 8

/* What to measure. Times are nanoseconds. */
struct shim_measurement {
	struct ibv_qp *sender; /* NULL with flush_recvs */
	struct shim_send send; /* its ID does not matter */
	int send_nsge;
	struct ibv_qp *receiver; /* may be NULL */
	int recv_nsge;
	int flush_recvs; /* see verbs.Measurement.Init */
	struct ibv_qp_attr init;
	int init_mask;
	struct ibv_cq *cq;
	struct ibv_cq *other;		    /* may be NULL */
	struct ibv_comp_channel *channel;   /* may be NULL */
	struct ibv_comp_channel *bystander; /* may be NULL */
	int solicited_only;
	int status;
	int warmup;
	int samples;
	int max_missed;
	int64_t deadline;
	int64_t budget;
};

/* What was found. */
struct shim_samples {
	int taken; /* the values in latency and arm */
	int missed;
	int spurious;
	int misdirected;
	int missing;
	int unsuccessful; /* 1 if status is that of an unsuccessful completion */
	int status;
	int stop;
	/* What failed, if err is not 0: a verb, or, with SHIM_NO_VERB, poll(2). */
	int verb;
	int err;
	int strange; /* 1 if an event named a CQ that is none that was known: not acknowledged */
};

/* A measurement under way. */
struct shim_run {
	const struct shim_measurement *m;
	struct shim_samples *s;
	struct ibv_cq *const *known; /* the CQs that an event may name */
	size_t nknown;
	int64_t *latency; /* room for m->samples */
	int64_t *arm;	  /* likewise; NULL without a channel */
	/*
	 * What verb the measurement is in, for another thread to read: the number of
	 * calls so far, above SHIM_VERB_BITS bits for the verb.
	 */
	uint64_t *in;
	uint64_t calls;
	int owed;  /* events of samples that were missed, which may come late */
	int waits; /* samples that were waited for to their deadline */
};

/* Makes a call, during which r->in tells of its verb. */
#define SHIM_IN(r, v, call)                                                                        \
	do {                                                                                       \
		__atomic_store_n((r)->in, ++(r)->calls << SHIM_VERB_BITS | (v), __ATOMIC_RELAXED); \
		errno = 0;                                                                         \
		call;                                                                              \
		__atomic_store_n((r)->in, (r)->calls << SHIM_VERB_BITS, __ATOMIC_RELAXED);         \
	} while (0)

/*
 * The functions below return 0 to go on, and 1 when the measurement has ended:
 * then r->s says why.
 */

static inline int shim_failed(struct shim_run *r, int verb, int err)
{
	r->s->verb = verb;
	r->s->err = err;
	return 1;
}

static inline int shim_stopped(struct shim_run *r, int stop)
{
	r->s->stop = stop;
	return 1;
}

/*
 * A bound on waiting that a host which stands still does not use up: verbs.Wait,
 * of which this is the C.
 */
struct shim_wait {
	int64_t left, share, asked;
};

static inline struct shim_wait shim_wait_for(int64_t length)
{
	return (struct shim_wait){ .left = length, .share = length / 10 + 1, .asked = shim_now() };
}

/* Returns what is left now, which is 0 for a wait that is NULL. */
static inline int64_t shim_left(struct shim_wait *w, int64_t now)
{
	int64_t passed;

	if (!w)
		return 0;
	passed = now - w->asked;
	w->asked = now;
	w->left -= passed < w->share ? passed : w->share;
	return w->left;
}

/* Waits until the channel has an event or the wait is over; looks at least once. */
static inline int shim_await_event(struct shim_run *r, struct ibv_comp_channel *ch, struct shim_wait *w, int *ready)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	for (;;) {
		int64_t left = shim_left(w, shim_now());
		int64_t pause = left > 0 && w->share < left ? w->share : left;
		/* Rounded up, so that the last millisecond is not spent spinning. */
		int64_t ms = left > 0 ? pause / 1000000 + 1 : 0;
		int ret = poll(&p, 1, ms > INT_MAX ? INT_MAX : (int)ms);

		if (ret < 0 && errno != EINTR)
			return shim_failed(r, SHIM_NO_VERB, errno);
		*ready = ret > 0;
		if (*ready || ms == 0)
			return 0;
	}
}

/*
 * Takes an event, which is there, and acknowledges it. It was taken at *at, and
 * names the CQ that is measured if *own. An address that is not that of a known
 * CQ is not followed.
 */
static inline int shim_take_event(struct shim_run *r, struct ibv_comp_channel *ch, int *own, int64_t *at)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;
	size_t i;
	int ret;

	SHIM_IN(r, SHIM_GET_CQ_EVENT, ret = ibv_get_cq_event(ch, &cq, &context));
	*at = shim_now();
	if (ret)
		return shim_failed(r, SHIM_GET_CQ_EVENT, shim_errno(ret));
	for (i = 0; i < r->nknown && r->known[i] != cq; i++)
		;
	if (i == r->nknown) {
		r->s->strange = 1;
		return shim_failed(r, SHIM_GET_CQ_EVENT, EBADMSG);
	}
	SHIM_IN(r, SHIM_ACK_CQ_EVENTS, ibv_ack_cq_events(cq, 1));
	*own = cq == r->m->cq;
	return 0;
}

/*
 * Polls without a pause until the completion of a sample was found, at *at, or
 * the wait is over; looks at least once. Completions of other samples are late
 * ones, and dropped: after the wait as well, but no more than the CQ can hold.
 */
static inline int shim_await_completion(struct shim_run *r, struct ibv_cq *cq, uint64_t id, struct shim_wait *w,
					struct ibv_wc *wc, int *found, int64_t *at)
{
	int late = cq->cqe;
	/* Asked before the last look, with the time of the look before it. */
	int64_t left = shim_left(w, shim_now());

	*found = 0;
	for (;;) {
		int n;

		SHIM_IN(r, SHIM_POLL_CQ, n = ibv_poll_cq(cq, 1, wc));
		*at = shim_now();
		if (n < 0)
			return shim_failed(r, SHIM_POLL_CQ, shim_errno(n));
		if (n > 0 && wc->wr_id == id) {
			*found = 1;
			return 0;
		}
		if (left <= 0 && (n == 0 || late-- <= 0))
			return 0;
		left = shim_left(w, *at);
	}
}

/* Looks for an event on the bystander: it went astray. */
static inline int shim_look_aside(struct shim_run *r, int *astray)
{
	int own;
	int64_t at;

	*astray = 0;
	if (!r->m->bystander)
		return 0;
	if (shim_await_event(r, r->m->bystander, NULL, astray))
		return 1;
	if (!*astray)
		return 0;
	if (shim_take_event(r, r->m->bystander, &own, &at))
		return 1;
	r->s->misdirected++;
	return 0;
}

/* Takes the events for which nobody waits, and looks at the budget. */
static inline int shim_tidy(struct shim_run *r, int64_t end)
{
	for (;;) {
		int ready, own;
		int64_t at;

		if (shim_now() >= end)
			return shim_stopped(r, SHIM_STOP_BUDGET);
		if (!r->m->channel)
			return 0;
		if (shim_await_event(r, r->m->channel, NULL, &ready))
			return 1;
		if (!ready)
			return 0;
		if (shim_take_event(r, r->m->channel, &own, &at))
			return 1;
		if (!own)
			r->s->misdirected++;
		else if (r->owed)
			r->owed--;
		else
			r->s->spurious++;
	}
}

/*
 * Waits for a sample's event, *seen at *at, and polls for its completion after
 * it, *found. With a completion but no event in time, *seen is 0. Events that go
 * on to name other CQs do not make the wait any longer.
 */
static inline int shim_notified(struct shim_run *r, uint64_t id, struct shim_wait *w, struct ibv_wc *wc, int *found,
				int *seen, int64_t *at)
{
	int ready, astray = 0;
	int64_t now;

	*seen = 0;
	do {
		if (shim_await_event(r, r->m->channel, w, &ready))
			return 1;
		if (!ready)
			break;
		if (shim_take_event(r, r->m->channel, seen, at))
			return 1;
		if (!*seen) {
			r->s->misdirected++;
			astray = 1;
		}
	} while (!*seen && shim_left(w, *at) > 0);
	if (shim_await_completion(r, r->m->cq, id, NULL, wc, found, &now))
		return 1;
	if (*seen && *found)
		return 0;
	if (*seen) {
		/*
		 * An event without a completion. If one was owed, this is it, and that of
		 * this sample is owed in its stead.
		 */
		*seen = 0;
		if (!r->owed)
			r->s->spurious++;
		return shim_await_completion(r, r->m->cq, id, w, wc, found, &now);
	}
	if (!astray && shim_look_aside(r, &astray))
		return 1;
	if (!*found)
		return 0;
	r->waits++;
	if (!astray) {
		r->s->missed++;
		r->owed++;
	}
	return 0;
}

/* Judges a completion that was awaited. */
static inline int shim_judge(struct shim_run *r, int found, const struct ibv_wc *wc, int status)
{
	if (!found) {
		r->s->missing++;
		return shim_stopped(r, SHIM_STOP_MISSING);
	}
	if ((int)wc->status != status) {
		r->s->unsuccessful = 1;
		r->s->status = (int)wc->status;
		return shim_stopped(r, SHIM_STOP_UNSUCCESSFUL);
	}
	return 0;
}

/* Changes the state of the receiver, for the receives of which are flushed. */
static inline int shim_change(struct shim_run *r, struct ibv_qp_attr *attr, int mask)
{
	int ret;

	SHIM_IN(r, SHIM_MODIFY_QP, ret = ibv_modify_qp(r->m->receiver, attr, mask));
	return ret ? shim_failed(r, SHIM_MODIFY_QP, shim_errno(ret)) : 0;
}

/* Takes the receiver from wherever it is to INIT. */
static inline int shim_renew(struct shim_run *r)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr init = r->m->init;

	return shim_change(r, &reset, IBV_QP_STATE) || shim_change(r, &init, r->m->init_mask);
}

/* Does what leads to the completion of the sample. */
static inline int shim_trigger(struct shim_run *r, struct ibv_send_wr *send)
{
	struct ibv_qp_attr broken = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr *bad = NULL;
	int ret;

	if (r->m->flush_recvs)
		return shim_change(r, &broken, IBV_QP_STATE);
	SHIM_IN(r, SHIM_POST_SEND, ret = ibv_post_send(r->m->sender, send, &bad));
	return ret ? shim_failed(r, SHIM_POST_SEND, shim_errno(ret)) : 0;
}

/* Takes the sample of the given number. */
static inline int shim_sample(struct shim_run *r, struct ibv_send_wr *send, struct ibv_recv_wr *recv, int number)
{
	const struct shim_measurement *m = r->m;
	struct ibv_recv_wr *bad_recv = NULL;
	struct ibv_wc wc = { 0 };
	int64_t arm = 0, t0, t1 = 0, now;
	struct shim_wait wait;
	int ret, found, good;

	if (m->flush_recvs && shim_renew(r))
		return 1;
	if (m->receiver) {
		recv->wr_id = (uint64_t)number;
		SHIM_IN(r, SHIM_POST_RECV, ret = ibv_post_recv(m->receiver, recv, &bad_recv));
		if (ret)
			return shim_failed(r, SHIM_POST_RECV, shim_errno(ret));
	}
	if (m->channel) {
		arm = shim_now();
		SHIM_IN(r, SHIM_REQ_NOTIFY_CQ, ret = ibv_req_notify_cq(m->cq, m->solicited_only));
		arm = shim_now() - arm;
		if (ret)
			return shim_failed(r, SHIM_REQ_NOTIFY_CQ, shim_errno(ret));
	}
	send->wr_id = (uint64_t)number;

	t0 = shim_now();
	if (shim_trigger(r, send))
		return 1;
	wait = shim_wait_for(m->deadline);
	if (m->channel) {
		if (shim_notified(r, send->wr_id, &wait, &wc, &found, &good, &t1))
			return 1;
	} else {
		if (shim_await_completion(r, m->cq, send->wr_id, &wait, &wc, &found, &t1))
			return 1;
		good = found;
	}
	if (shim_judge(r, found, &wc, m->status))
		return 1;
	if (m->other) {
		wait = shim_wait_for(m->deadline);
		if (shim_await_completion(r, m->other, send->wr_id, &wait, &wc, &found, &now))
			return 1;
		if (shim_judge(r, found, &wc, IBV_WC_SUCCESS))
			return 1;
	}
	if (r->waits >= m->max_missed)
		return shim_stopped(r, SHIM_STOP_MISSED);
	if (good && number >= m->warmup) {
		r->latency[r->s->taken] = t1 - t0;
		if (r->arm)
			r->arm[r->s->taken] = arm;
		r->s->taken++;
	}
	return 0;
}

/* Takes all samples. Nothing of the caller's memory is used after the return. */
static inline void shim_measure(const struct shim_measurement *m, struct ibv_sge *send_sges,
				struct ibv_sge *recv_sges, struct ibv_cq *const *known, size_t nknown,
				uint64_t *in, int64_t *latency, int64_t *arm, struct shim_samples *s)
{
	struct shim_run r = {
		.m = m, .s = s, .known = known, .nknown = nknown, .latency = latency, .arm = arm, .in = in,
	};
	struct ibv_send_wr send = { 0 };
	struct ibv_recv_wr recv = { .sg_list = recv_sges, .num_sge = m->recv_nsge };
	int64_t end = shim_now() + m->budget;
	int i;

	if (m->sender)
		send = shim_send_wr(m->sender, &m->send, send_sges, m->send_nsge);
	for (i = 0; i < m->warmup + m->samples; i++) {
		if (shim_tidy(&r, end) || shim_sample(&r, &send, &recv, i))
			return;
	}
}

#endif
