// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * HiSilicon's RoCE engine in its third version (HIP09), for libhns.
 *
 * Real, as the library does it (providers/hns of rdma-core): which device it takes
 * for its own (by PCI id alone), the depth of queues (hns_roce_u_verbs.c:
 * verify_cq_create_attr, verify_qp_create_cap, hns_roce_set_qp_params,
 * set_ext_sge_param, verify_srq_create_attr), what query_qp tells of the send
 * queue (hns_roce_u_query_qp), which state takes a request (hns_roce_u_hw_v2.c:
 * check_qp_send, check_qp_recv), each request and each completion.
 *
 * Modelled, as drivers/infiniband/hw/hns of Linux 6.1 decides it:
 *  - a CQ of depth n tells n - 1 entries, 64 at least (hns_roce_cq.c: set_cq_param),
 *    and refuses flags with EOPNOTSUPP (hns_roce_create_cq);
 *  - what is written back of a QP: the receive queue as it was made, of the send
 *    queue what the library asked, inline data rounded up and, beyond 1024 bytes,
 *    clamped, not refused (hns_roce_qp.c: set_rq_size, set_ext_sge_param); what is queried: both as they were made (hns_roce_hw_v2.c:
 *    hns_roce_v2_query_qp). For a library that asks for extended SGEs, inline data is
 *    32 at least and max_send_sge of 1 is queried as 2 (update_inline_data); from 6.1.2
 *    until the mend of late 2025 (6.12.58, 6.18) this was written back, too. Debian 12's
 *    rdma-core 44.0 does not ask for them, 44.12 does;
 *  - SRQs: powers of two written back (hns_roce_srq.c: set_srq_basic_param), no
 *    other size later (EOPNOTSUPP), and a limit above the depth is EINVAL
 *    (hns_roce_hw_v2.c: hns_roce_v2_modify_srq);
 *  - transitions: all from and to SQD are EINVAL (check_qp_state), and so are a
 *    P_Key other than 0, more reads than 128 and an MTU above that of the network
 *    device (hns_roce_qp.c: hns_roce_check_qp_attr);
 *  - what each of these prints to the kernel's log.
 * The limits are the driver's defaults (set_default_caps), with which a virtual
 * function starts; a physical function is told its own by the firmware. Chosen
 * here, since only firmware knows them: 31 completion vectors, 128 GIDs, the
 * version of the firmware, the least depth of a work queue (64, as in the library).
 *
 * Not modelled: XRC, memory windows, direct WQEs (64 bytes stored to a page of the
 * QP; the library goes by the doorbell then), receive inline, extended atomics,
 * congestion control, HIP08 (which has no UD for processes, reserves one SGE of each
 * receive and takes 32 bytes inline), and that flushing waits for the library to ask
 * for ERR again after each post: here a queue in ERR is flushed as soon as the
 * records tell of a request. Whether the hardware flushes the sends of a pair that
 * was never in RTS is not known from the source.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <rdma/hns-abi.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "paper.h"

enum {
	/* hns_roce_hw_v2.h, hns_roce_device.h */
	MAX_QPS = 0x1000,
	MAX_WQES = 0x8000,
	MAX_CQS = 0x100000,
	MAX_CQES = 0x400000,
	MAX_SRQS = 0x100000,
	MAX_SRQ_WRS = 0x8000,
	MAX_SGES = 64,
	MAX_INLINE = 1024,
	MAX_RDMA = 128,
	MIN_CQES = 64,
	MIN_WQES = 64,
	WQE_SHIFT = 6,
	SGE_SHIFT = 4,
	SGES_IN_WQE = 2,
	INLINE_IN_RC_WQE = 32,
	INLINE_IN_UD_WQE = 8,
	CQE_SIZE_V2 = 32,
	CQE_SIZE_V3 = 64,
	HW_VERSION = 0x130,
	HW_PAGE = 4096,

	DOORBELL = 0x230, /* where in the UAR page */
};

/* What a doorbell tells: 8 bytes, the queue's number in the lowest 24 bits. */
enum { DB_SQ, DB_RQ, DB_SRQ, DB_CQ_CI, DB_CQ_ARM };

enum {
	OP_SEND, OP_SEND_INV, OP_SEND_IMM, OP_WRITE, OP_WRITE_IMM, OP_READ, OP_CAS, OP_FAA,
};

enum { RECV_WRITE_IMM, RECV_SEND, RECV_SEND_IMM, RECV_SEND_INV };

enum { WQE_SIGNALED = BIT(8), WQE_SOLICITED = BIT(11), WQE_INLINE = BIT(12) };

/* priv of a context */
enum { CONTEXT_CONFIG };
/* priv of a CQ */
enum { CQ_CONTEXT, CQ_CQE_SIZE };
/* priv of a QP: depths are powers of two, offsets are into buf */
enum { QP_SQ_DEPTH, QP_RQ_DEPTH, QP_RQ_SHIFT, QP_RQ_SGES, QP_EXT_SGES, QP_EXT_OFFSET, QP_RQ_OFFSET };
/* priv of an SRQ */
enum { SRQ_CONTEXT, SRQ_SHIFT, SRQ_PI };

static size_t page_aligned(size_t n)
{
	return ALIGN(n, (size_t)HW_PAGE);
}

/* hns_roce_alloc_ucontext */
static int hns_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct hns_roce_ib_alloc_ucontext_resp resp = {
		.qp_tab_size = MAX_QPS,
		.srq_tab_size = MAX_SRQS,
		.cqe_size = CQE_SIZE_V3,
	};
	struct hns_roce_ib_alloc_ucontext req;
	int err;

	err = paper_request(udata, &req, sizeof(req), 0);
	if (err)
		return err;
	ctx->priv[CONTEXT_CONFIG] = req.config & HNS_ROCE_EXSGE_FLAGS;
	if (ctx->priv[CONTEXT_CONFIG]) {
		resp.config = HNS_ROCE_RSP_EXSGE_FLAGS;
		resp.max_inline_data = MAX_INLINE;
	}
	return paper_respond(udata, &resp, sizeof(resp));
}

/* hns_roce_create_cq */
static int hns_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct hns_roce_ib_create_cq_resp resp = { .cqn = cq->num, .cap_flags = HNS_ROCE_CQ_FLAG_RECORD_DB };
	struct ib_device *ib = cq->ib.device;
	struct hns_roce_ib_create_cq req;
	u32 depth, size;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > MAX_CQES)
		return paper_refuse(-EINVAL, ib, "failed to check CQ count %u, max = %u.\n", attr->cqe, MAX_CQES);
	if (attr->comp_vector >= ib->num_comp_vectors)
		return paper_refuse(-EINVAL, ib, "failed to check CQ vector = %u, max = %d.\n", attr->comp_vector, ib->num_comp_vectors);
	err = paper_request(udata, &req, sizeof(req), 0);
	if (err)
		return err;
	size = CQE_SIZE_V2;
	if (udata->inlen >= offsetofend(typeof(req), cqe_size)) {
		if (req.cqe_size != CQE_SIZE_V2 && req.cqe_size != CQE_SIZE_V3)
			return paper_refuse(-EINVAL, ib, "invalid cqe size %u.\n", req.cqe_size);
		size = req.cqe_size;
	}

	depth = roundup_pow_of_two(max_t(u32, attr->cqe, MIN_CQES));
	err = paper_pin(ib, &cq->buf, req.buf_addr, (size_t)depth * size, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return paper_refuse(err, ib, "failed to alloc CQ buf, ret = %d.\n", err);
	err = paper_pin(ib, &cq->db, req.db_addr, sizeof(__le32), 0);
	if (err)
		return paper_refuse(err, ib, "failed to alloc CQ db, ret = %d.\n", err);
	cq->priv[CQ_CONTEXT] = (unsigned long)ctx;
	cq->priv[CQ_CQE_SIZE] = size;
	cq->entries = depth;
	cq->ib.cqe = depth - 1;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* hns_roce_create_srq */
static int hns_create_srq(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct hns_roce_ib_create_srq_resp resp = { .srqn = srq->num };
	struct ib_device *ib = srq->ib.device;
	struct hns_roce_ib_create_srq req;
	int err;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (attr->attr.max_wr > MAX_SRQ_WRS || attr->attr.max_sge > MAX_SGES || !attr->attr.max_sge)
		return paper_refuse(-EINVAL, ib, "invalid SRQ attr, depth = %u, sge = %u.\n", attr->attr.max_wr, attr->attr.max_sge);
	err = paper_request(udata, &req, sizeof(req), 0);
	if (err)
		return err;

	attr->attr.max_wr = roundup_pow_of_two(max(attr->attr.max_wr, 1u));
	attr->attr.max_sge = roundup_pow_of_two(attr->attr.max_sge);
	attr->attr.srq_limit = 0;
	srq->attr = attr->attr;
	srq->priv[SRQ_CONTEXT] = (unsigned long)ctx;
	srq->priv[SRQ_SHIFT] = SGE_SHIFT + ilog2(attr->attr.max_sge);

	err = paper_pin(ib, &srq->db, req.que_addr, page_aligned(attr->attr.max_wr * sizeof(__le32)), 0);
	if (err)
		return paper_refuse(err, ib, "failed to alloc SRQ idx mtr, ret = %d.\n", err);
	err = paper_pin(ib, &srq->buf, req.buf_addr, page_aligned((size_t)attr->attr.max_wr << srq->priv[SRQ_SHIFT]), 0);
	if (err)
		return paper_refuse(err, ib, "failed to alloc SRQ buf mtr, ret = %d.\n", err);
	return paper_respond(udata, &resp, sizeof(resp));
}

/* hns_roce_v2_modify_srq */
static int hns_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	return mask & IB_SRQ_MAX_WR ? -EOPNOTSUPP : paper_modify_srq(ib, attr, mask, udata);
}

/* set_rq_size */
static int hns_receive_queue(struct paper_qp *qp, struct ib_qp_init_attr *attr)
{
	struct ib_device *ib = qp->ib.device;
	struct ib_qp_cap *cap = &attr->cap;

	if (attr->srq || !cap->max_recv_wr) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	if (cap->max_recv_wr > MAX_WQES || cap->max_recv_sge > MAX_SGES)
		return paper_refuse(-EINVAL, ib, "RQ config error, depth = %u, sge = %u\n", cap->max_recv_wr, cap->max_recv_sge);
	cap->max_recv_wr = roundup_pow_of_two(max_t(u32, cap->max_recv_wr, MIN_WQES));
	cap->max_recv_sge = roundup_pow_of_two(max(cap->max_recv_sge, 1u));
	qp->priv[QP_RQ_DEPTH] = cap->max_recv_wr;
	qp->priv[QP_RQ_SGES] = cap->max_recv_sge;
	qp->priv[QP_RQ_SHIFT] = SGE_SHIFT + ilog2(cap->max_recv_sge);
	return 0;
}

/*
 * set_user_sq_size, set_ext_sge_param and update_inline_data. cap is what will be
 * written back; qp->cap gets what is queried.
 */
static int hns_send_queue(struct paper_qp *qp, struct ib_qp_init_attr *attr, const struct hns_roce_ib_create_qp *req, bool extended)
{
	struct ib_device *ib = qp->ib.device;
	struct ib_qp_cap *cap = &attr->cap;
	bool ud = attr->qp_type == IB_QPT_UD;
	u32 std = ud ? 0 : SGES_IN_WQE;
	u32 depth, ext, wqe_ext, inl;

	if (check_shl_overflow(1u, req->log_sq_bb_count, &depth) || depth > MAX_WQES)
		return -EINVAL;
	if (req->log_sq_stride != WQE_SHIFT) { /* the driver's least is the greatest, too */
		ibdev_err(ib, "failed to check SQ stride size.\n");
		return -EINVAL;
	}
	if (cap->max_send_sge > MAX_SGES)
		return paper_refuse(-EINVAL, ib, "failed to check SQ SGE size %u.\n", cap->max_send_sge);

	if (cap->max_inline_data > 1u << 31) /* rounded up, it is 0 in 32 bits */
		cap->max_inline_data = 0;
	else if (cap->max_inline_data)
		cap->max_inline_data = min_t(u32, roundup_pow_of_two(cap->max_inline_data), MAX_INLINE);
	wqe_ext = cap->max_send_sge > std ? cap->max_send_sge - std : ud;
	if (extended) {
		inl = cap->max_inline_data >> SGE_SHIFT;
		if (!ud && inl <= SGES_IN_WQE)
			inl = 0;
		ext = max(wqe_ext, inl);
		ext = ext ? roundup_pow_of_two(ext) : 0;
		qp->cap.max_send_sge = clamp(ext + std, 1u, (u32)MAX_SGES);
		wqe_ext = ext;
		cap->max_inline_data = max(cap->max_inline_data, (ud ? ext : max(ext, (u32)SGES_IN_WQE)) << SGE_SHIFT);
	} else {
		qp->cap.max_send_sge = max(cap->max_send_sge, 1u);
	}
	qp->priv[QP_SQ_DEPTH] = depth;
	if (wqe_ext)
		qp->priv[QP_EXT_SGES] = max_t(u32, roundup_pow_of_two(depth * wqe_ext), HW_PAGE >> SGE_SHIFT);
	return 0;
}

/* hns_roce_create_qp */
static int hns_make_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct hns_roce_ib_create_qp_resp resp = {};
	struct ib_device *ib = qp->ib.device;
	struct hns_roce_ib_create_qp req;
	size_t len;
	int err;

	if (attr->create_flags)
		return -EOPNOTSUPP;
	err = hns_receive_queue(qp, attr);
	if (err) {
		ibdev_err(ib, "failed to set user RQ size, ret = %d.\n", err);
		goto bad;
	}
	err = paper_request(udata, &req, sizeof(req), 0);
	if (err) {
		ibdev_err(ib, "failed to copy QP ucmd, ret = %d\n", err);
		goto bad;
	}
	err = hns_send_queue(qp, attr, &req, ctx->priv[CONTEXT_CONFIG]);
	if (err) {
		ibdev_err(ib, "failed to set user SQ size, ret = %d.\n", err);
		goto bad;
	}
	qp->cap.max_send_wr = qp->priv[QP_SQ_DEPTH];
	qp->cap.max_recv_wr = attr->cap.max_recv_wr;
	qp->cap.max_recv_sge = attr->cap.max_recv_sge;
	qp->cap.max_inline_data = attr->cap.max_inline_data;

	/* at most 2 MiB, 32 MiB and 32 MiB: set_wqe_buf_attr */
	len = page_aligned(qp->priv[QP_SQ_DEPTH] << WQE_SHIFT);
	qp->priv[QP_EXT_OFFSET] = len;
	len += page_aligned(qp->priv[QP_EXT_SGES] << SGE_SHIFT);
	qp->priv[QP_RQ_OFFSET] = len;
	if (qp->priv[QP_RQ_DEPTH])
		len += page_aligned(qp->priv[QP_RQ_DEPTH] << qp->priv[QP_RQ_SHIFT]);
	err = paper_pin(ib, &qp->buf, req.buf_addr, len, 0);
	if (err)
		return paper_refuse(err, ib, "failed to alloc QP buffer, ret = %d.\n", err);
	if (attr->cap.max_send_wr && udata->inlen >= offsetofend(typeof(req), sdb_addr)) {
		err = paper_pin(ib, &qp->sq, req.sdb_addr, sizeof(__le32), IB_ACCESS_LOCAL_WRITE);
		if (err)
			goto no_doorbell;
		resp.cap_flags |= HNS_ROCE_QP_CAP_SQ_RECORD_DB;
	}
	if (qp->priv[QP_RQ_DEPTH]) {
		err = paper_pin(ib, &qp->rq, req.db_addr, sizeof(__le32), IB_ACCESS_LOCAL_WRITE);
		if (err)
			goto no_doorbell;
		resp.cap_flags |= HNS_ROCE_QP_CAP_RQ_RECORD_DB;
	}
	return paper_respond(udata, &resp, sizeof(resp));

no_doorbell:
	ibdev_err(ib, "failed to alloc QP doorbell, ret = %d.\n", err);
	return err;
bad:
	ibdev_err(ib, "failed to set QP param, ret = %d.\n", err);
	return err;
}

static int hns_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	int err = hns_make_qp(qp, attr, ctx, udata);

	if (err)
		ibdev_err(qp->ib.device, "create QP type 0x%x failed(%d)\n", attr->qp_type, err);
	return err;
}

/* hns_roce_modify_qp and hns_roce_check_qp_attr; check_qp_state of hns_roce_hw_v2.c */
static int hns_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state from = paper_state(qp), to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct paper_dev *dev = to_paper_dev(qp->ib.device);
	struct ib_device *ib = qp->ib.device;

	if (mask & IB_QP_CUR_STATE && attr->cur_qp_state != from)
		return -EINVAL;
	if (to == IB_QPS_ERR && !qp->sq.va) {
		ibdev_warn(ib, "flush cqe is not supported in userspace!\n");
		return -EINVAL;
	}
	if (!ib_modify_qp_is_ok(from, to, qp->type, mask))
		return paper_refuse(-EINVAL, ib, "ib_modify_qp_is_ok failed\n");
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return paper_refuse(-EINVAL, ib, "invalid attr, pkey_index = %u.\n", attr->pkey_index);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > MAX_RDMA)
		return paper_refuse(-EINVAL, ib, "invalid attr, max_rd_atomic = %u.\n", attr->max_rd_atomic);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_RDMA)
		return paper_refuse(-EINVAL, ib, "invalid attr, max_dest_rd_atomic = %u.\n", attr->max_dest_rd_atomic);
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096 ||
	     (dev->port.netdev && attr->path_mtu > iboe_get_mtu(dev->port.netdev->mtu))))
		return paper_refuse(-EINVAL, ib, "attr path_mtu(%d)invalid while modify qp", attr->path_mtu);
	if (from == IB_QPS_SQD || to == IB_QPS_SQD || from == IB_QPS_SQE || to == IB_QPS_SQE)
		return -EINVAL;
	return 0;
}

struct hns_sge {
	__le32 len, lkey;
	__le64 addr;
};

/* The producer that a doorbell record tells: 16 bits of a counter. */
static u16 hns_record(const struct paper_mem *mem)
{
	return mem->va ? le32_to_cpu(READ_ONCE(*(__le32 *)mem->va)) : 0;
}

/* The scatter list of a receive: it ends at a length of 0, or at one that is invalid. */
static void hns_scatter(struct paper_wr *wr, const void *wqe, unsigned int n)
{
	const struct hns_sge *seg = wqe;
	u32 len;

	for (wr->nsge = 0; wr->nsge < min_t(unsigned int, n, PAPER_MAX_SGE); wr->nsge++, seg++) {
		len = le32_to_cpu(READ_ONCE(seg->len));
		if (!len || len == 0x80000000)
			break;
		wr->sge[wr->nsge] = (struct paper_sge){ le64_to_cpu(READ_ONCE(seg->addr)), len, le32_to_cpu(READ_ONCE(seg->lkey)) };
	}
}

static u32 hns_srq_avail(struct paper_srq *srq)
{
	u16 n = (u16)srq->priv[SRQ_PI] - (u16)srq->taken;

	return min_t(u32, n, srq->attr.max_wr);
}

static int hns_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	u32 i;

	if (srq) {
		if (!hns_srq_avail(srq))
			return 0;
		smp_rmb();
		i = le32_to_cpu(READ_ONCE(((__le32 *)srq->db.va)[srq->taken & (srq->attr.max_wr - 1)]));
		i &= srq->attr.max_wr - 1;
		wr->index = i;
		hns_scatter(wr, srq->buf.va + ((size_t)i << srq->priv[SRQ_SHIFT]), srq->attr.max_sge);
		return 1;
	}
	if (!qp->priv[QP_RQ_DEPTH] || hns_record(&qp->rq) == (u16)qp->rq_ci)
		return 0;
	smp_rmb();
	i = qp->rq_ci & (qp->priv[QP_RQ_DEPTH] - 1);
	wr->index = i;
	hns_scatter(wr, qp->buf.va + qp->priv[QP_RQ_OFFSET] + ((size_t)i << qp->priv[QP_RQ_SHIFT]), qp->priv[QP_RQ_SGES]);
	return 1;
}

static void hns_gather(struct paper_wr *wr, unsigned int i, const struct hns_sge *seg)
{
	wr->sge[i] = (struct paper_sge){ le64_to_cpu(seg->addr), le32_to_cpu(seg->len), le32_to_cpu(seg->lkey) };
}

/* The area of the send queue for what has no room in its requests: a ring. */
static int hns_extended(struct paper_qp *qp, void *to, u32 first, size_t len)
{
	u32 n = qp->priv[QP_EXT_SGES];
	const void *area = qp->buf.va + qp->priv[QP_EXT_OFFSET];
	size_t size = (size_t)n << SGE_SHIFT, at, part;

	if (!n || len > size)
		return -EINVAL;
	at = (size_t)(first & (n - 1)) << SGE_SHIFT;
	part = min(len, size - at);
	memcpy(to, area + at, part);
	memcpy(to + part, area, len - part);
	return 0;
}

static int hns_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	static const enum ib_wr_opcode opcodes[] = {
		[OP_SEND] = IB_WR_SEND,
		[OP_SEND_INV] = IB_WR_SEND_WITH_INV,
		[OP_SEND_IMM] = IB_WR_SEND_WITH_IMM,
		[OP_WRITE] = IB_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IB_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = IB_WR_RDMA_READ,
		[OP_CAS] = IB_WR_ATOMIC_CMP_AND_SWP,
		[OP_FAA] = IB_WR_ATOMIC_FETCH_AND_ADD,
	};
	bool ud = qp->type == IB_QPT_UD;
	u32 head, first, len, n, std = ud ? 0 : SGES_IN_WQE, i;
	struct hns_sge seg[PAPER_MAX_SGE];
	__le32 w[16]; /* the request, read once */

	if (hns_record(&qp->sq) == (u16)qp->sq_ci)
		return 0;
	smp_rmb();
	i = qp->sq_ci & (qp->priv[QP_SQ_DEPTH] - 1);
	memcpy(w, qp->buf.va + ((size_t)i << WQE_SHIFT), sizeof(w));
	wr->index = qp->sq_ci & 0xffff;

	head = le32_to_cpu(w[0]);
	len = le32_to_cpu(w[1]);
	n = le32_to_cpu(w[3]) >> 24;
	first = le32_to_cpu(w[4]) & 0xffffff;
	wr->vendor = head & 0x1f;
	wr->flags = (head & WQE_SIGNALED ? IB_SEND_SIGNALED : 0) | (head & WQE_SOLICITED ? IB_SEND_SOLICITED : 0) |
		    (head & WQE_INLINE ? IB_SEND_INLINE : 0);
	if (wr->vendor >= ARRAY_SIZE(opcodes))
		return -EINVAL;
	wr->opcode = opcodes[wr->vendor];
	wr->imm = cpu_to_be32(le32_to_cpu(w[2]));
	wr->invalidate_rkey = le32_to_cpu(w[2]);
	wr->nsge = 0;
	if (ud) {
		wr->to.qkey = le32_to_cpu(w[6]);
		wr->to.qpn = le32_to_cpu(w[7]) & 0xffffff;
		wr->to.global = true;
		memcpy(wr->to.gid.raw, &w[12], sizeof(wr->to.gid.raw));
	} else {
		wr->rkey = le32_to_cpu(w[5]);
		wr->remote_addr = le32_to_cpu(w[6]) | (u64)le32_to_cpu(w[7]) << 32;
	}

	if (wr->flags & IB_SEND_INLINE) {
		bool extended = le32_to_cpu(w[4]) & BIT(31);
		__le64 bytes;

		if (ud && !extended)
			len &= 0xffff;
		if (len > PAPER_MAX_INLINE || (!extended && len > (ud ? INLINE_IN_UD_WQE : INLINE_IN_RC_WQE)))
			return -EINVAL;
		wr->inline_len = len;
		if (extended)
			return hns_extended(qp, wr->inline_data, first, len) ?: 1;
		if (ud) { /* set_ud_inl_seg: in what four fields leave free */
			bytes = cpu_to_le64(le32_to_cpu(w[1]) >> 16 | (u64)(le32_to_cpu(w[3]) >> 24) << 16 |
					    (u64)(le32_to_cpu(w[4]) & 0xffffff) << 24 | (u64)(le32_to_cpu(w[5]) & 0xffff) << 48);
			memcpy(wr->inline_data, &bytes, len);
		} else {
			memcpy(wr->inline_data, &w[8], len);
		}
		return 1;
	}

	if (n > PAPER_MAX_SGE || n > qp->cap.max_send_sge)
		return -EINVAL;
	if (n > std && hns_extended(qp, &seg[std], first, (n - std) * sizeof(*seg)))
		return -EINVAL;
	if (std)
		memcpy(seg, &w[8], sizeof(*seg) * SGES_IN_WQE);
	for (i = 0; i < n; i++)
		hns_gather(wr, i, &seg[i]);
	wr->nsge = n;
	if (wr->vendor == OP_CAS || wr->vendor == OP_FAA) {
		if (len != 8)
			return -EINVAL;
		wr->swap = le32_to_cpu(w[12]) | (u64)le32_to_cpu(w[13]) << 32;
		wr->compare_add = wr->vendor == OP_FAA ? wr->swap : le32_to_cpu(w[14]) | (u64)le32_to_cpu(w[15]) << 32;
	}
	return 1;
}

static int hns_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	u32 ci = le32_to_cpu(READ_ONCE(*(__le32 *)cq->db.va)), opcode;
	__le32 *cqe = cq->buf.va + (size_t)(cq->pi & (cq->entries - 1)) * cq->priv[CQ_CQE_SIZE];

	if (((cq->pi - ci) & 0xffffff) >= cq->entries)
		return -ENOSPC;
	opcode = wc->wr->vendor;
	if (wc->recv)
		opcode = wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ? RECV_WRITE_IMM :
			 wc->flags & IB_WC_WITH_IMM ? RECV_SEND_IMM :
			 wc->flags & IB_WC_WITH_INVALIDATE ? RECV_SEND_INV : RECV_SEND;

	cqe[1] = wc->flags & IB_WC_WITH_INVALIDATE ? cpu_to_le32(wc->wr->invalidate_rkey) : cpu_to_le32(be32_to_cpu(wc->imm));
	cqe[2] = 0;
	cqe[3] = cpu_to_le32(wc->qp->num & 0xffffff);
	cqe[4] = cpu_to_le32(wc->byte_len);
	cqe[5] = 0;
	cqe[6] = 0;
	cqe[7] = cpu_to_le32((wc->src_qp & 0xffffff) | (wc->flags & IB_WC_GRH ? BIT(30) : 0));
	/* The owner's bit is the opposite of the ring's turn. */
	smp_store_release(&cqe[0], cpu_to_le32(opcode | (wc->recv ? BIT(6) : 0) | (cq->pi & cq->entries ? 0 : BIT(7)) |
					       PAPER_CODE(paper_syndromes, wc->status, 0x23) << 8 | wc->wr->index << 16));
	return 0;
}

static void hns_reset_qp(struct paper_qp *qp)
{
	/* The library counts from 0 again, and does not write the records before it posts. */
	if (qp->sq.va)
		WRITE_ONCE(*(__le32 *)qp->sq.va, 0);
	if (qp->rq.va)
		WRITE_ONCE(*(__le32 *)qp->rq.va, 0);
}

/* A store to the page of doorbells. */
static void hns_doorbell(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	u32 num = value & 0xffffff;
	struct paper_srq *srq;
	struct paper_cq *cq;

	if (offset != DOORBELL || size != 8)
		return;
	switch (value >> 24 & 0xf) {
	case DB_SRQ:
		srq = xa_load(&dev->srqs, num);
		if (srq && srq->priv[SRQ_CONTEXT] == (unsigned long)ctx)
			srq->priv[SRQ_PI] = value >> 32 & 0xffff;
		break;
	case DB_CQ_ARM:
		cq = xa_load(&dev->cqs, num);
		if (cq && cq->priv[CQ_CONTEXT] == (unsigned long)ctx) {
			/* the consumer, of which the doorbell has as many bits as count two turns */
			u32 behind = (cq->pi - (u32)(value >> 32 & 0xffffff)) & (2 * cq->entries - 1);

			paper_arm(cq, value >> 56 & 1 ? PAPER_ARM_SOLICITED : PAPER_ARM_NEXT, cq->pi - behind);
		}
		break;
	}
}

static const struct ib_device_ops hns_ops = {
	.uverbs_no_driver_id_binding = 1,
	.modify_srq = hns_modify_srq,
};

const struct paper_vendor paper_hns = {
	.name = "hns",
	.device = "hns_%d",
	.driver_id = RDMA_DRIVER_HNS,
	.abi = 1,
	.pci_vendor = 0x19e5,
	.pci_device = 0xa228,
	.bus_driver = "hns3",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 31,
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_UD),
	/* hns_roce_query_device */
	.limits = {
		.fw_ver = 1 << 16,
		.max_mr_size = ~0ULL,
		.page_size_cap = 0xfffff000,
		.hw_ver = HW_VERSION,
		.max_qp = MAX_QPS,
		.max_qp_wr = MAX_WQES,
		.device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_MEM_MGT_EXTENSIONS,
		.max_send_sge = MAX_SGES,
		.max_recv_sge = MAX_SGES,
		.max_sge_rd = MAX_SGES,
		.max_cq = MAX_CQS,
		.max_cqe = MAX_CQES,
		.max_mr = 0x100000,
		.max_pd = 0x1000000,
		.max_qp_rd_atom = MAX_RDMA,
		.max_qp_init_rd_atom = MAX_RDMA,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_srq = MAX_SRQS,
		.max_srq_wr = MAX_SRQ_WRS,
		.max_srq_sge = MAX_SGES,
		.max_fast_reg_page_list_len = 512,
	},
	/* hns_roce_query_port */
	.port = {
		.gid_tbl_len = 128,
		.port_cap_flags = IB_PORT_CM_SUP | IB_PORT_REINIT_SUP | IB_PORT_VENDOR_CLASS_SUP | IB_PORT_BOOT_MGMT_SUP,
		.max_msg_sz = 0x80000000,
		.active_speed = IB_SPEED_HDR,
	},
	.ops = &hns_ops,
	.alloc_ucontext = hns_alloc_ucontext,
	.doorbell_pages = 1,
	.stored = hns_doorbell,
	.create_cq = hns_create_cq,
	.create_srq = hns_create_srq,
	.create_qp = hns_create_qp,
	.modify_qp = hns_modify_qp,
	.next_send = hns_next_send,
	.next_recv = hns_next_recv,
	.srq_avail = hns_srq_avail,
	.complete = hns_complete,
	.reset_qp = hns_reset_qp,
};
