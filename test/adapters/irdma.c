// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Intel's E810 in RoCE mode, for libirdma.
 *
 * Real, as the library does it (providers/irdma of rdma-core): a CQ has twice the
 * entries and two more, and tells those that were asked (uverbs.c: ucreate_cq,
 * get_cq_size); a work queue is counted in quanta of 32 bytes and rounded up to a
 * power of two of them, 258 of the send queue stay unused (irdma_ucreate_qp; uk.c:
 * irdma_get_wqe_shift, irdma_get_sqdepth); inline data beyond the device's limit is
 * refused with EINVAL; an armed CQ is not armed again before its event was taken
 * (irdma_uarm_cq); each request and each completion; of a queue that is flushed the
 * library makes the completions of all its requests out of one
 * (uk.c: irdma_uk_cq_poll_cmpl), and a post to a pair in ERR asks for another
 * (irdma_issue_flush).
 *
 * Modelled, as drivers/infiniband/hw/irdma of Linux 6.1 decides it (verbs.c, unless
 * said otherwise):
 *  - of a QP nothing is written back but what the library says; query_qp tells, to a
 *    library of the older ABI (without IRDMA_ALLOC_UCTX_USE_RAW_ATTR, as rdma-core 44),
 *    max_send_wr and max_recv_wr as the library passed them, which is more than it
 *    told the program, and to a newer one what can be used (irdma_setup_umode_qp,
 *    irdma_query_qp; uk.c of the driver: irdma_uk_calc_depth_shift_sq);
 *  - query_qp tells all access flags, whatever they are, no QP type and that all
 *    requests are signaled (irdma_query_qp zeroes init_attr, and IB_SIGNAL_ALL_WR is 0);
 *  - the limits of irdma_validate_qp_attrs; max_qp_wr that query_device tells (4063)
 *    is not among them;
 *  - a QP that was in ERR or RESET, other than the RESET that it was made in, can not be
 *    brought to INIT again: EINVAL (irdma_modify_qp_roce); transitions that make no
 *    sense, and too many reads, print to the kernel's log;
 *  - CQs: flags other than IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION are EOPNOTSUPP, and
 *    cqe is what the library passed (irdma_create_cq, irdma_resize_cq);
 *  - completions with errors: those that the driver makes when an event of the device
 *    tells of the error (hw.c: irdma_set_flush_fields), which knows no error for
 *    exhausted RNR retries: a flush is told.
 * The counts of objects and the port are those of a public capture of an E810-C
 * (deepseek-ai/3FS issue #192); where it was made with another version of the driver,
 * the rest is what Linux 6.1 says (ctrl.c, icrdma_hw.c, user.h). Chosen here: 32
 * completion vectors.
 *
 * Not modelled: memory windows, the push page, X722 and the ABI of libi40iw, iWARP,
 * and whether the hardware completes a flush of an empty queue, which the library
 * would swallow.
 */
#include <linux/bitfield.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <rdma/ib_mad.h>
#include <rdma/irdma-abi.h>

#include "paper.h"

enum {
	/* user.h, defs.h and icrdma_hw.h of the driver */
	MAX_SGES = 13,
	MAX_INLINE = 101,
	MAX_QUANTA = 32768,
	MAX_CQ_SIZE = 1048575,
	MAX_IRD = 127,
	MAX_ORD = 255,
	SQ_RESERVED = 258,
	RQ_RESERVED = 1,
	MIN_WRS = 8,
	CHUNK = 8, /* quanta that a request does not cross */
	QUANTUM = 32,
	CQE_SIZE = 32,
	HW_PAGE = 4096,
	GENERATION = 2,
	FEATURES = 3, /* IRDMA_FEATURE_RTS_AE, IRDMA_FEATURE_CQ_RESIZE */
	CAPS_RC = 1 | 2 | 4 | 8, /* IRDMA_WRITE_WITH_IMM, IRDMA_SEND_WITH_IMM, IRDMA_ROCE, IRDMA_PUSH_MODE */
	CAPS_UD = 2 | 4 | 8,
	MAX_AHS = 131072,
};

enum {
	OP_WRITE = 0x00, OP_READ = 0x01, OP_SEND = 0x03, OP_SEND_INV = 0x04, OP_SEND_SOL = 0x05,
	OP_SEND_SOL_INV = 0x06, OP_INV = 0x0a, OP_NOP = 0x0c, OP_WRITE_SOL = 0x0d,
};

/* The header of a request, its fourth word; that of a completion; the word to arm with. */
#define WQE_KEY GENMASK_ULL(31, 0)
#define WQE_AH GENMASK_ULL(16, 0)
#define WQE_OPCODE GENMASK_ULL(37, 32)
#define WQE_MORE_FRAGMENTS GENMASK_ULL(41, 38)
#define WQE_IMM BIT_ULL(47)
#define WQE_INLINE_LEN GENMASK_ULL(55, 48)
#define WQE_INLINE BIT_ULL(57)
#define WQE_SIGNALED BIT_ULL(62)
#define WQE_VALID BIT_ULL(63)
#define FRAGMENT_LEN GENMASK_ULL(62, 32)

#define CQE_MINOR GENMASK_ULL(15, 0)
#define CQE_MAJOR GENMASK_ULL(31, 16)
#define CQE_WQE GENMASK_ULL(46, 32)
#define CQE_EXTENDED BIT_ULL(50)
#define CQE_INVALIDATED BIT_ULL(53)
#define CQE_SOLICITED BIT_ULL(54)
#define CQE_ERROR BIT_ULL(55)
#define CQE_OP GENMASK_ULL(61, 56)
#define CQE_SQ BIT_ULL(62)
#define CQE_IMM BIT_ULL(62) /* of the second half */
#define CQE_VALID BIT_ULL(63)

#define ARM_CQ_SELECT GENMASK_ULL(13, 0)
#define ARM_NEXT BIT_ULL(14)
#define ARM_SEQUENCE GENMASK_ULL(17, 16)
#define ARM_WORD 4 /* in the shadow area, of 64 bits each; the first is the head */
#define SHADOW_SIZE 64

/* priv of a context */
enum { CONTEXT_RAW };
/* priv of a CQ: its ring has any number of slots */
enum { CQ_SLOT, CQ_POLARITY, CQ_RESIZED, CQ_ARMED };
/* priv of a QP: the send queue in quanta, the receive queue in requests of 1 << RQ_SHIFT */
enum { QP_CONTEXT, QP_SQ_SIZE, QP_SQ_POS, QP_RQ_SIZE, QP_RQ_SHIFT, QP_RQ_OFFSET, QP_ENDED, QP_IN_ERROR, QP_FLUSHES };
/* QP_FLUSHES: the queues of which one more completion is due */
enum { FLUSH_SQ = 1, FLUSH_RQ = 2 };

/* irdma_get_wqe_shift, for the second generation */
static unsigned int irdma_shift(u32 sges, u32 inl)
{
	if (sges <= 1 && inl <= 8)
		return 0;
	if (sges < 4 && inl <= 39)
		return 1;
	return sges < 8 && inl <= MAX_INLINE ? 2 : 3;
}

/* irdma_get_sqdepth and irdma_get_rqdepth; 0 if it is too deep */
static u32 irdma_depth(u32 wrs, unsigned int shift, u32 reserved)
{
	u32 depth = roundup_pow_of_two((wrs << shift) + reserved);

	depth = max_t(u32, depth, MIN_WRS << shift);
	return depth > MAX_QUANTA ? 0 : depth;
}

static int irdma_query_device(struct paper_dev *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	attr->max_qp_wr = (MAX_QUANTA - SQ_RESERVED) / CHUNK; /* IRDMA_MAX_QP_WRS */
	return 0;
}

/* irdma_alloc_ucontext */
static int irdma_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct irdma_alloc_ucontext_resp resp = {
		.kernel_ver = IRDMA_ABI_VER,
		.feature_flags = FEATURES,
		.max_hw_wq_frags = MAX_SGES,
		.max_hw_read_sges = MAX_SGES,
		.max_hw_inline = MAX_INLINE,
		.max_hw_rq_quanta = MAX_QUANTA,
		.max_hw_wq_quanta = MAX_QUANTA,
		.min_hw_cq_size = 1,
		.max_hw_cq_size = MAX_CQ_SIZE,
		.max_hw_sq_chunk = CHUNK,
		.hw_rev = GENERATION,
		.comp_mask = IRDMA_ALLOC_UCTX_USE_RAW_ATTR,
	};
	struct irdma_alloc_ucontext_req req;
	int err;

	err = paper_request(udata, &req, sizeof(req), offsetofend(typeof(req), rsvd8));
	if (err)
		return err;
	if (udata->outlen < offsetofend(typeof(resp), rsvd))
		return -EINVAL;
	if (req.userspace_ver < 4 || req.userspace_ver > IRDMA_ABI_VER)
		return paper_refuse(-EINVAL, ctx->ib.device, "Invalid userspace driver version detected. Detected version %d, should be %d\n",
				      req.userspace_ver, IRDMA_ABI_VER);
	if (udata->outlen == offsetofend(typeof(resp), rsvd))
		return -EOPNOTSUPP;
	ctx->priv[CONTEXT_RAW] = req.comp_mask & IRDMA_ALLOC_UCTX_USE_RAW_ATTR;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int irdma_alloc_pd(struct paper_pd *pd, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct irdma_alloc_pd_resp resp = { .pd_id = pd->num };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int irdma_create_ah(struct paper_ah *ah, struct ib_udata *udata)
{
	struct irdma_create_ah_resp resp = { .ah_id = ah->num };

	if (ah->num >= MAX_AHS)
		return -ENOMEM;
	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return paper_respond(udata, &resp, sizeof(resp));
}

/*
 * irdma_get_pbl: the memory of queues is registered as a region first. It is taken from
 * the region, which has none then, so that the process is not charged twice, and may
 * deregister it when it likes.
 */
static int irdma_take(struct paper_ucontext *ctx, struct paper_mem *mem, u64 addr, size_t len, int missing)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	struct paper_mr *mr;
	unsigned long i;
	int err = missing;

	mutex_lock(&dev->lock);
	xa_for_each (&dev->mrs, i, mr) {
		if (mr->mem.addr != addr || !mr->mem.va || mr->ib.pd->uobject->context != &ctx->ib)
			continue;
		err = -EINVAL;
		if (mr->mem.len < len || !(mr->access & IB_ACCESS_LOCAL_WRITE))
			continue;
		*mem = mr->mem;
		memset(&mr->mem, 0, sizeof(mr->mem));
		err = 0;
		break;
	}
	mutex_unlock(&dev->lock);
	return err;
}

/* Completion queues. */

static int irdma_take_cq(struct paper_ucontext *ctx, struct paper_mem *mem, u64 addr, int entries, int missing)
{
	if (entries < 4 || entries > 2 * (MAX_CQ_SIZE + 1))
		return -EINVAL;
	return irdma_take(ctx, mem, addr, (size_t)entries * CQE_SIZE, missing);
}

/* irdma_create_cq */
static int irdma_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct irdma_create_cq_resp resp = { .cq_id = cq->num };
	struct irdma_create_cq_req req;
	u32 entries;
	int err;

	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	err = paper_request(udata, &req, sizeof(req), offsetofend(typeof(req), user_cq_buf));
	if (err)
		return err;
	if (udata->outlen < sizeof(resp) || attr->cqe > INT_MAX)
		return -EINVAL;
	entries = max_t(u32, attr->cqe, 4);
	err = irdma_take_cq(ctx, &cq->buf, req.user_cq_buf, entries, -EPROTO);
	if (err)
		return err;
	err = irdma_take(ctx, &cq->db, req.user_shadow_area, SHADOW_SIZE, -EPROTO);
	if (err)
		return err;
	cq->priv[CQ_POLARITY] = 1;
	cq->entries = entries;
	cq->ib.cqe = entries;
	resp.cq_size = entries;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* irdma_resize_cq: the library polls what is in the old ring, which is its own. */
static int irdma_resize_cq(struct paper_cq *cq, int entries, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(cq->ib.device);
	struct irdma_resize_cq_req req;
	struct paper_mem mem, old;
	int err;

	err = paper_request(udata, &req, sizeof(req), sizeof(req));
	if (err)
		return err;
	if (entries > MAX_CQ_SIZE)
		return -EINVAL;
	entries = max(entries, 4);
	if (entries == cq->ib.cqe)
		return 0;
	err = irdma_take_cq(rdma_udata_to_drv_context(udata, struct paper_ucontext, ib), &mem, req.user_cq_buffer, entries, -ENOMEM);
	if (err)
		return err;
	mutex_lock(&dev->lock);
	old = cq->buf;
	cq->buf = mem;
	cq->entries = entries;
	cq->ib.cqe = entries - 1;
	cq->priv[CQ_SLOT] = 0;
	cq->priv[CQ_POLARITY] = 1;
	cq->priv[CQ_RESIZED]++;
	mutex_unlock(&dev->lock);
	paper_unpin(&old);
	return 0;
}

static u64 irdma_shadow(const struct paper_cq *cq, unsigned int word)
{
	return le64_to_cpu(READ_ONCE(((__le64 *)cq->db.va)[word]));
}

/* An arming is for completions that come after it. */
static void irdma_poll_arm(struct paper_cq *cq)
{
	u64 word = irdma_shadow(cq, ARM_WORD);
	unsigned long sequence = word & ARM_SEQUENCE;

	if (sequence == cq->priv[CQ_ARMED])
		return;
	cq->priv[CQ_ARMED] = sequence;
	paper_arm(cq, word & ARM_NEXT ? PAPER_ARM_NEXT : PAPER_ARM_SOLICITED, cq->pi);
}

/* Queue pairs. */

/* irdma_create_qp, irdma_validate_qp_attrs and irdma_setup_umode_qp */
static int irdma_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct irdma_create_qp_resp resp = { .qp_id = qp->num };
	const struct ib_qp_cap *cap = &attr->cap;
	struct irdma_create_qp_req req;
	u32 sq_depth, rq_depth;
	unsigned int sq_shift, rq_shift;
	int err;

	if (attr->create_flags)
		return -EOPNOTSUPP;
	if (cap->max_inline_data > MAX_INLINE || cap->max_send_sge > MAX_SGES || cap->max_recv_sge > MAX_SGES ||
	    cap->max_send_wr > MAX_QUANTA || cap->max_recv_wr > MAX_QUANTA)
		return -EINVAL;
	err = paper_request(udata, &req, sizeof(req), sizeof(req));
	if (err)
		return err;
	if (udata->outlen < offsetofend(typeof(resp), rsvd))
		return -EINVAL;

	qp->cap = *cap;
	sq_shift = irdma_shift(cap->max_send_sge + 1, cap->max_inline_data);
	rq_shift = irdma_shift(cap->max_recv_sge, 0);
	if (ctx->priv[CONTEXT_RAW]) {
		sq_depth = irdma_depth(cap->max_send_wr, sq_shift, SQ_RESERVED);
		rq_depth = irdma_depth(cap->max_recv_wr, rq_shift, RQ_RESERVED);
		qp->cap.max_send_wr = (sq_depth - SQ_RESERVED) >> sq_shift;
		qp->cap.max_recv_wr = (rq_depth - RQ_RESERVED) >> rq_shift;
	} else {
		sq_depth = cap->max_send_wr << sq_shift;
		rq_depth = cap->max_recv_wr << rq_shift;
	}
	if (!sq_depth || !rq_depth) /* the library never asks for none */
		return -EINVAL;
	resp.actual_sq_size = sq_depth >> sq_shift;
	resp.actual_rq_size = rq_depth >> rq_shift;
	resp.qp_caps = qp->type == IB_QPT_UD ? CAPS_UD : CAPS_RC;

	qp->priv[QP_CONTEXT] = req.user_compl_ctx;
	qp->priv[QP_SQ_SIZE] = sq_depth;
	qp->priv[QP_RQ_SIZE] = resp.actual_rq_size;
	qp->priv[QP_RQ_SHIFT] = rq_shift;
	qp->priv[QP_RQ_OFFSET] = ALIGN((size_t)sq_depth * QUANTUM, HW_PAGE);
	err = irdma_take(ctx, &qp->buf, req.user_wqe_bufs, qp->priv[QP_RQ_OFFSET] + (size_t)rq_depth * QUANTUM, -ENODATA);
	return err ?: paper_respond(udata, &resp, sizeof(resp));
}

/* irdma_modify_qp_roce */
static int irdma_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state from = paper_state(qp), to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct paper_dev *dev = to_paper_dev(qp->ib.device);
	struct irdma_modify_qp_resp resp = {};
	struct irdma_modify_qp_req req = {};
	int err;

	if ((udata->inlen && udata->inlen < offsetofend(typeof(req), rq_flush)) ||
	    (udata->outlen && udata->outlen < offsetofend(typeof(resp), push_valid)))
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > MAX_ORD)
		return paper_refuse(-EINVAL, &dev->ib, "rd_atomic = %d, above max_hw_ord=%d\n", attr->max_rd_atomic, MAX_ORD);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_IRD)
		return paper_refuse(-EINVAL, &dev->ib, "rd_atomic = %d, above max_hw_ird=%d\n", attr->max_dest_rd_atomic, MAX_IRD);
	if (!(mask & IB_QP_STATE))
		return 0;
	if (!ib_modify_qp_is_ok(from, to, qp->type, mask)) {
		ibdev_warn(&dev->ib, "modify_qp invalid for qp_id=%d, old_state=0x%x, new_state=0x%x\n", qp->num, from, to);
		return -EINVAL;
	}
	if (udata->inlen) {
		err = paper_request(udata, &req, sizeof(req), 0);
		if (err)
			return err;
	}
	err = 0;
	mutex_lock(&dev->lock);
	if (to == IB_QPS_INIT && (from == IB_QPS_RESET || from == IB_QPS_INIT)) {
		if (qp->priv[QP_ENDED])
			err = -EINVAL;
	} else if (to == IB_QPS_RESET || to == IB_QPS_ERR || to == IB_QPS_SQE) {
		qp->priv[QP_ENDED] = 1;
		if (qp->priv[QP_IN_ERROR])
			qp->priv[QP_FLUSHES] |= (req.sq_flush ? FLUSH_SQ : 0) | (req.rq_flush ? FLUSH_RQ : 0);
	}
	mutex_unlock(&dev->lock);
	if (!err && udata->outlen)
		err = paper_respond(udata, &resp, sizeof(resp));
	return err;
}

/* irdma_query_qp */
static int irdma_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	mutex_lock(&dev->lock);
	attr->qp_state = attr->cur_qp_state = paper_state(qp);
	attr->path_mtu = qp->attr.path_mtu ?: IB_MTU_1024;
	attr->qkey = qp->attr.qkey;
	attr->rq_psn = qp->attr.rq_psn;
	attr->sq_psn = qp->attr.sq_psn;
	attr->dest_qp_num = qp->attr.dest_qp_num;
	attr->pkey_index = 0xffff; /* the key, not its index */
	attr->retry_cnt = qp->attr.retry_cnt;
	attr->rnr_retry = qp->attr.rnr_retry;
	attr->max_rd_atomic = qp->attr.max_rd_atomic ?: MAX_ORD;
	attr->max_dest_rd_atomic = qp->attr.max_dest_rd_atomic ?: MAX_IRD;
	mutex_unlock(&dev->lock);
	attr->cap = qp->cap;
	attr->qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND;
	attr->port_num = 1;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->cap = qp->cap;
	return 0;
}

/* The data path: all that it needs lies in memory of the process. */

/*
 * A pair in error is flushed once by the driver, and again whenever the library asks;
 * each time one completion of a queue stands for all of its requests.
 */
static bool irdma_flush_is_due(struct paper_qp *qp, unsigned long queue)
{
	if (paper_state(qp) != IB_QPS_ERR && paper_state(qp) != IB_QPS_SQE)
		return true; /* it is no flush */
	if (!qp->priv[QP_IN_ERROR]) {
		qp->priv[QP_IN_ERROR] = 1;
		qp->priv[QP_FLUSHES] = FLUSH_SQ | FLUSH_RQ;
	}
	return qp->priv[QP_FLUSHES] & queue;
}

static u64 irdma_word(const void *wqe, unsigned int word)
{
	return le64_to_cpu(READ_ONCE(((const __le64 *)wqe)[word]));
}

/* The fragments of a request: the first one in its first half, the others behind the header. */
static int irdma_fragments(struct paper_wr *wr, const void *wqe, u64 header, bool first)
{
	unsigned int more = min_t(unsigned int, FIELD_GET(WQE_MORE_FRAGMENTS, header), 14), i;
	u64 word;

	wr->nsge = 0;
	for (i = first ? 0 : 1; i <= more; i++) {
		unsigned int at = i ? 2 + 2 * i : 0;

		word = irdma_word(wqe, at + 1);
		if (!FIELD_GET(FRAGMENT_LEN, word))
			continue;
		wr->sge[wr->nsge] = (struct paper_sge){ irdma_word(wqe, at), FIELD_GET(FRAGMENT_LEN, word), FIELD_GET(WQE_KEY, word) };
		wr->nsge++;
	}
	return 0;
}

static int irdma_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	u32 size = qp->priv[QP_RQ_SIZE], i = qp->rq_ci % size;
	unsigned int shift = qp->priv[QP_RQ_SHIFT];
	const void *wqe = qp->buf.va + qp->priv[QP_RQ_OFFSET] + ((size_t)(i << shift) * QUANTUM);
	u64 header;

	if (!irdma_flush_is_due(qp, FLUSH_RQ))
		return 0;
	header = irdma_word(wqe, 3);
	if (!!(header & WQE_VALID) == (qp->rq_ci / size & 1)) {
		qp->priv[QP_FLUSHES] &= ~FLUSH_RQ;
		return 0;
	}
	smp_rmb();
	wr->index = i << shift;
	/* a request has room for so many fragments: 1, 3, 7, 15 */
	if (FIELD_GET(WQE_MORE_FRAGMENTS, header) > (2u << shift) - 2)
		header &= ~WQE_MORE_FRAGMENTS;
	irdma_fragments(wr, wqe, header, true);
	return 1;
}

/* irdma_copy_inline_data: 8 bytes, then 31 of each quantum */
static void irdma_inline(struct paper_wr *wr, const void *wqe, unsigned int len)
{
	unsigned int done = min(len, 8u), part;
	const void *from = wqe + QUANTUM;

	wr->inline_len = len;
	memcpy(wr->inline_data, wqe + 8, done);
	for (; done < len; done += part, from += QUANTUM) {
		part = min(len - done, 31u);
		memcpy(wr->inline_data + done, from, part);
	}
}

static int irdma_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	struct paper_dev *dev = to_paper_dev(qp->ib.device);
	u32 size = qp->priv[QP_SQ_SIZE], i, quanta, len;
	const void *wqe;
	struct paper_ah *ah;
	u64 header, word;
	bool imm;

	if (!irdma_flush_is_due(qp, FLUSH_SQ))
		return 0;
	for (quanta = 0;; quanta++) { /* what fills a chunk up is skipped */
		i = qp->priv[QP_SQ_POS] % size;
		wqe = qp->buf.va + (size_t)i * QUANTUM;
		header = irdma_word(wqe, 3);
		if (!!(header & WQE_VALID) == (qp->priv[QP_SQ_POS] / size & 1) || quanta == CHUNK) {
			qp->priv[QP_FLUSHES] &= ~FLUSH_SQ;
			return 0;
		}
		if (FIELD_GET(WQE_OPCODE, header) != OP_NOP)
			break;
		qp->priv[QP_SQ_POS]++;
	}
	smp_rmb();

	imm = header & WQE_IMM;
	len = FIELD_GET(WQE_INLINE_LEN, header);
	if (header & WQE_INLINE)
		quanta = len <= 8 ? 1 : 1 + DIV_ROUND_UP(len - 8, 31);
	else
		quanta = FIELD_GET(WQE_MORE_FRAGMENTS, header) / 2 + 1;
	wr->index = i;
	wr->vendor = FIELD_GET(WQE_OPCODE, header);
	wr->flags = (header & WQE_SIGNALED ? IB_SEND_SIGNALED : 0) | (header & WQE_INLINE ? IB_SEND_INLINE : 0);
	wr->inline_len = 0;
	wr->nsge = 0;
	if (i + quanta > size || quanta > CHUNK) {
		qp->priv[QP_SQ_POS]++;
		return -EINVAL;
	}
	qp->priv[QP_SQ_POS] += quanta;

	word = irdma_word(wqe, 2);
	wr->imm = cpu_to_be32((u32)irdma_word(wqe, 0));
	wr->invalidate_rkey = wr->rkey = FIELD_GET(WQE_KEY, header);
	wr->remote_addr = word;
	switch (wr->vendor) {
	case OP_WRITE_SOL:
		wr->flags |= IB_SEND_SOLICITED;
		fallthrough;
	case OP_WRITE:
		wr->opcode = imm ? IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_RDMA_WRITE;
		break;
	case OP_READ:
		wr->opcode = IB_WR_RDMA_READ;
		break;
	case OP_SEND_SOL:
		wr->flags |= IB_SEND_SOLICITED;
		fallthrough;
	case OP_SEND:
		wr->opcode = imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
		break;
	case OP_SEND_SOL_INV:
		wr->flags |= IB_SEND_SOLICITED;
		fallthrough;
	case OP_SEND_INV:
		wr->opcode = IB_WR_SEND_WITH_INV;
		break;
	case OP_INV:
		wr->opcode = IB_WR_LOCAL_INV;
		return 1;
	default:
		return -EINVAL;
	}
	if (qp->type == IB_QPT_UD) {
		ah = xa_load(&dev->ahs, FIELD_GET(WQE_AH, header));
		if (!ah || ah->ib.pd != qp->ib.pd)
			return -EINVAL;
		wr->to.qkey = word;
		wr->to.qpn = word >> 32 & 0xffffff;
		wr->to.global = true;
		wr->to.gid = rdma_ah_read_grh(&ah->attr)->dgid;
	}
	if (header & WQE_INLINE) {
		if (len > MAX_INLINE)
			return -EINVAL;
		irdma_inline(wr, wqe, len);
	} else {
		irdma_fragments(wr, wqe, header, !imm);
	}
	return 1;
}

/* irdma_set_flush_fields: what there is no event for is told as a flush */
static u16 irdma_status(enum ib_wc_status status)
{
	switch (status) {
	case IB_WC_LOC_PROT_ERR: return 2;
	case IB_WC_REM_ACCESS_ERR: return 3;
	case IB_WC_LOC_QP_OP_ERR: return 4;
	case IB_WC_REM_OP_ERR: return 5;
	case IB_WC_LOC_LEN_ERR: return 6;
	case IB_WC_FATAL_ERR: return 7;
	case IB_WC_RETRY_EXC_ERR: return 8;
	case IB_WC_MW_BIND_ERR: return 9;
	case IB_WC_REM_INV_REQ_ERR: return 10;
	default: return 1;
	}
}

/* The next slot of the ring, written with the valid bit of this turn. */
static void irdma_write_slot(struct paper_cq *cq, u64 a, u64 b, u64 c, u64 d, unsigned int ahead)
{
	unsigned long slot = cq->priv[CQ_SLOT] + ahead, polarity = cq->priv[CQ_POLARITY];
	__le64 *cqe;

	if (slot >= cq->entries) {
		slot -= cq->entries;
		polarity ^= 1;
	}
	cqe = cq->buf.va + slot * CQE_SIZE;
	cqe[0] = cpu_to_le64(a);
	cqe[1] = cpu_to_le64(b);
	cqe[2] = cpu_to_le64(c);
	smp_store_release(&cqe[3], cpu_to_le64(d | (polarity ? CQE_VALID : 0)));
}

static int irdma_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	struct paper_qp *qp = wc->qp;
	bool imm = wc->recv && wc->flags & IB_WC_WITH_IMM;
	u32 need = imm ? 2 : 1, used = 0;
	u64 head, header;

	irdma_poll_arm(cq); /* what was armed before is for this one, too */
	head = irdma_shadow(cq, 0);
	if ((irdma_shadow(cq, ARM_WORD) & ARM_CQ_SELECT) != (cq->priv[CQ_RESIZED] & ARM_CQ_SELECT))
		head = 0; /* that of an older ring */
	if (head < cq->entries)
		used = (cq->priv[CQ_SLOT] + cq->entries - head) % cq->entries;
	if (used + need >= cq->entries)
		return -ENOSPC;

	header = FIELD_PREP(CQE_WQE, wc->wr->index) | (wc->recv ? 0 : CQE_SQ) | (wc->solicited ? CQE_SOLICITED : 0);
	if (wc->status != IB_WC_SUCCESS) {
		irdma_flush_is_due(qp, 0);
		qp->priv[QP_FLUSHES] &= ~(wc->recv ? FLUSH_RQ : FLUSH_SQ);
		header |= CQE_ERROR | FIELD_PREP(CQE_MAJOR, 1) | FIELD_PREP(CQE_MINOR, irdma_status(wc->status));
	}
	/* the operation: of a send the driver's, of a receive that of the last packet */
	header |= FIELD_PREP(CQE_OP, !wc->recv ? wc->wr->vendor : wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ? 0x0b : 0x04);
	if (wc->recv && wc->flags & IB_WC_WITH_INVALIDATE)
		header |= CQE_INVALIDATED;
	if (imm) {
		header |= CQE_EXTENDED;
		irdma_write_slot(cq, be32_to_cpu(wc->imm), 0, 0, CQE_IMM, 1);
	}
	irdma_write_slot(cq, wc->byte_len, qp->priv[QP_CONTEXT],
			 (u64)qp->num << 32 | (wc->flags & IB_WC_WITH_INVALIDATE ? be32_to_cpu(wc->imm) : wc->src_qp), header, 0);
	cq->priv[CQ_SLOT] += need;
	if (cq->priv[CQ_SLOT] >= cq->entries) {
		cq->priv[CQ_SLOT] -= cq->entries;
		cq->priv[CQ_POLARITY] ^= 1;
	}
	return 0;
}

static const struct ib_device_ops irdma_ops = {
	.query_qp = irdma_query_qp,
};

const struct paper_vendor paper_irdma = {
	.name = "irdma",
	.device = "irdma%d",
	.driver_id = RDMA_DRIVER_IRDMA,
	.abi = IRDMA_ABI_VER,
	.pci_vendor = 0x8086,
	.pci_device = 0x1592,
	.bus_driver = "ice",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 32,
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_UD),
	.limits = {
		.fw_ver = 1ULL << 32 | 74,
		.max_mr_size = 0x200000000000,
		.page_size_cap = SZ_4K | SZ_2M | SZ_1G,
		.hw_ver = 2,
		.max_qp = 4092,
		.max_qp_wr = MAX_QUANTA, /* of the requests of libraries; see irdma_query_device */
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_MEM_MGT_EXTENSIONS,
		.max_send_sge = MAX_SGES,
		.max_recv_sge = MAX_SGES,
		.max_sge_rd = MAX_SGES,
		.max_cq = 8189,
		.max_cqe = MAX_CQ_SIZE - 1,
		.max_mr = 4194301,
		.max_pd = 262141,
		.max_qp_rd_atom = MAX_IRD,
		.max_qp_init_rd_atom = MAX_ORD,
		.max_mcast_grp = 4096,
		.max_mcast_qp_attach = 8,
		.max_total_mcast_qp_attach = 32768,
		.max_ah = MAX_AHS,
		.max_fast_reg_page_list_len = 262144,
		.timestamp_mask = 0x1ffff,
	},
	.port = {
		.gid_tbl_len = 32,
		.lid = 1,
		.port_cap_flags = IB_PORT_CM_SUP | IB_PORT_REINIT_SUP,
		.max_msg_sz = 0x7fffffff,
	},
	.ops = &irdma_ops,
	.query_device = irdma_query_device,
	.alloc_ucontext = irdma_alloc_ucontext,
	.doorbell_pages = 1,
	.alloc_pd = irdma_alloc_pd,
	.create_ah = irdma_create_ah,
	.create_cq = irdma_create_cq,
	.resize_cq = irdma_resize_cq,
	.create_qp = irdma_create_qp,
	.modify_qp = irdma_modify_qp,
	.next_send = irdma_next_send,
	.next_recv = irdma_next_recv,
	.complete = irdma_complete,
	.poll_arm = irdma_poll_arm,
};
