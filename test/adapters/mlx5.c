// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Paper ConnectX-7: what libmlx5 asks of mlx5_ib and of the adapter.
 *
 * libmlx5's own, and so real: the layout and size of queues, max_post, the figures
 * that create_qp and create_srq write back, the refusal of sends by state, the wait
 * queue of an SRQ, work requests, doorbell records, the reading of completions, the
 * sequence number of armings.
 *
 * Modelled on drivers/infiniband/hw/mlx5 of Linux 6.1: the context (main.c
 * mlx5_ib_alloc_ucontext), the size of a CQ (cq.c mlx5_ib_create_cq), what a query
 * of an SRQ says (srq.c create_srq_user, mlx5_ib_query_srq) and of a QP (qp.c
 * mlx5_ib_query_qp, set_rq_size), the destination of an address handle (ah.c).
 *
 * Not modelled: DEVX and every object of its ioctls, dynamic UARs, BlueFlame (the
 * doorbell record tells of each request), CQE compression, resizing, signatures,
 * scatter to CQE (a device may decline it), TSO, memory windows, XRC, DC.
 */
#include <linux/log2.h>
#include <rdma/mlx5-abi.h>

#include "paper.h"

enum {
	WQE_BB = 64,
	UNIT = 16, /* of a work request */
	MAX_SQ = 1 << 15, /* work request blocks of a send queue */
	MAX_RQ = 1 << 15,
	MAX_CQ = 1 << 22,
	MAX_DESC_SQ = 1024,
	MAX_DESC_RQ = 512,
	LKEY_NONE = 0x100, /* ends the elements of a receive */
};

enum { /* opcodes of work requests */
	OP_RDMA_WRITE = 0x08,
	OP_RDMA_WRITE_IMM = 0x09,
	OP_SEND = 0x0a,
	OP_SEND_IMM = 0x0b,
	OP_SEND_INVAL = 0x01,
	OP_RDMA_READ = 0x10,
	OP_ATOMIC_CS = 0x11,
	OP_ATOMIC_FA = 0x12,
	OP_UMR = 0x25,
};

enum { /* of completions */
	CQE_REQ = 0,
	CQE_RESP_WR_IMM = 1,
	CQE_RESP_SEND = 2,
	CQE_RESP_SEND_IMM = 3,
	CQE_RESP_SEND_INV = 4,
	CQE_REQ_ERR = 13,
	CQE_RESP_ERR = 14,
};

struct cqe {
	u8 reserved0[22];
	__be16 slid;
	__be32 flags_rqpn;
	u8 reserved28[4];
	__be32 srqn_uidx;
	__be32 imm;
	u8 reserved40[4];
	__be32 byte_cnt;
	u8 timestamp[6];
	u8 vendor_syndrome; /* of an error; else the timestamp goes on */
	u8 syndrome;
	__be32 opcode_qpn;
	__be16 wqe_counter;
	u8 signature;
	u8 op_own;
} __packed;
static_assert(sizeof(struct cqe) == 64);

struct data_seg {
	__be32 byte_count, lkey;
	__be64 addr;
};

struct av { /* of a datagram */
	__be32 qkey, reserved;
	__be32 dqpn;
	u8 rate_sl, fl_mlid;
	__be16 rlid;
	u8 reserved16[4];
	u8 rmac[6];
	u8 tclass, hop_limit;
	__be32 grh_gid_fl;
	u8 rgid[16];
};
static_assert(sizeof(struct av) == 3 * UNIT);

/* What the vendor's part of our objects holds. */
struct mcq {
	u32 cqe_size;
};

struct msrq {
	u32 shift, sges, head, max;
};

struct mqp {
	u32 uidx;
	u32 sq_count, rq_count, rq_shift;
	u16 posted; /* blocks of the send queue that were taken */
	u8 *sq;
};

PAPER_OWN(own_cq, mcq, paper_cq)
PAPER_OWN(own_srq, msrq, paper_srq)
PAPER_OWN(own_qp, mqp, paper_qp)

static int alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	struct mlx5_ib_alloc_ucontext_resp resp = {};
	int err;

	err = paper_request(udata, &req, sizeof(req), sizeof(struct mlx5_ib_alloc_ucontext_req));
	if (err)
		return err;
	if (!req.total_num_bfregs || req.total_num_bfregs > 512 || req.num_low_latency_bfregs > req.total_num_bfregs - 1)
		return -EINVAL;
	resp.qp_tab_size = 1 << 18;
	resp.bf_reg_size = 512;
	/* Not 0, which would have the library make UARs as objects of ioctls. */
	resp.tot_bfregs = ALIGN(req.total_num_bfregs, 2);
	resp.cache_line_size = 64;
	resp.max_sq_desc_sz = MAX_DESC_SQ;
	resp.max_rq_desc_sz = MAX_DESC_RQ;
	resp.max_send_wqebb = MAX_SQ;
	resp.max_recv_wr = MAX_RQ;
	resp.max_srq_recv_wr = MAX_RQ;
	resp.num_ports = 1;
	resp.response_length = min(sizeof(resp), udata->outlen);
	resp.cqe_version = min_t(u8, req.max_cqe_version, 1);
	resp.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	resp.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	resp.log_uar_size = 12;
	resp.num_uars_per_page = 1;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int mlx5_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	/* Bits 8 and up are a command: 0 regular, 2 write combining, 3 not cached: all UARs. */
	unsigned long command = vma->vm_pgoff >> 8;

	if (command != 0 && command != 2 && command != 3)
		return -EINVAL;
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return paper_mmap_ignored(ctx, vma);
}

static int query_device(struct paper_dev *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct mlx5_ib_query_device_resp resp = {};

	if (dev->port.link == IB_LINK_LAYER_ETHERNET)
		attr->max_pkeys = 1;
	if (!udata || !udata->outlen)
		return 0;
	if (udata->outlen < sizeof(resp.comp_mask) + sizeof(resp.response_length))
		return -EINVAL;
	resp.response_length = min(sizeof(resp), udata->outlen);
	return paper_respond(udata, &resp, sizeof(resp));
}

static int create_ah(struct paper_ah *ah, struct ib_udata *udata)
{
	struct mlx5_ib_create_ah_resp resp = {};

	if (!udata || ah->attr.type != RDMA_AH_ATTR_TYPE_ROCE)
		return 0;
	if (udata->outlen < offsetofend(struct mlx5_ib_create_ah_resp, dmac))
		return -EINVAL;
	resp.response_length = min(sizeof(resp), udata->outlen);
	memcpy(resp.dmac, ah->attr.roce.dmac, sizeof(resp.dmac));
	return paper_respond(udata, &resp, sizeof(resp));
}

/* Completion queues. */

static __be32 *record(const struct paper_mem *db, unsigned int i)
{
	return (__be32 *)db->va + i;
}

static int create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct mlx5_ib_create_cq_resp resp = { .cqn = cq->num };
	struct mlx5_ib_create_cq req;
	int err;

	if (attr->flags & ~(IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN | IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION))
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe >= MAX_CQ)
		return -EINVAL;
	err = paper_request(udata, &req, sizeof(req), offsetof(struct mlx5_ib_create_cq, flags));
	if (err)
		return err;
	if ((req.cqe_size != 64 && req.cqe_size != 128) || req.cqe_comp_en || req.db_addr & 7)
		return -EINVAL;
	cq->entries = roundup_pow_of_two(attr->cqe + 1);
	own_cq(cq)->cqe_size = req.cqe_size;
	err = paper_pin(cq->ib.device, &cq->buf, req.buf_addr, (size_t)cq->entries * req.cqe_size, IB_ACCESS_LOCAL_WRITE) ?:
	      paper_pin(cq->ib.device, &cq->db, req.db_addr, 8, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	/* The first arming writes 0, which is what is there: mark that none was seen. */
	*record(&cq->db, 1) = cpu_to_be32(~0);
	cq->ib.cqe = cq->entries - 1;
	return paper_respond(udata, &resp, sizeof(resp));
}

static void poll_arm(struct paper_cq *cq)
{
	__be32 *word = record(&cq->db, 1), was = READ_ONCE(*word);
	u32 arm = be32_to_cpu(was);

	if (arm == ~0U || cmpxchg(word, was, cpu_to_be32(~0)) != was)
		return;
	/* An arming that was written before its sequence number's event was taken. */
	if ((arm >> 28 & 3) != (cq->events & 3))
		return;
	paper_arm(cq, arm & BIT(24) ? PAPER_ARM_SOLICITED : PAPER_ARM_NEXT, cq->pi - ((cq->pi - arm) & 0xffffff));
}

static u8 cqe_opcode(const struct paper_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		return wc->recv ? CQE_RESP_ERR : CQE_REQ_ERR;
	if (!wc->recv)
		return CQE_REQ;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		return CQE_RESP_WR_IMM;
	if (wc->flags & IB_WC_WITH_INVALIDATE)
		return CQE_RESP_SEND_INV;
	return wc->flags & IB_WC_WITH_IMM ? CQE_RESP_SEND_IMM : CQE_RESP_SEND;
}

static int write_cqe(struct paper_cq *cq, const struct paper_wc *wc)
{
	u32 ci = be32_to_cpu(READ_ONCE(*record(&cq->db, 0)));
	u32 size = own_cq(cq)->cqe_size;
	struct cqe *at = cq->buf.va + (size_t)(cq->pi & (cq->entries - 1)) * size + (size - 64);
	struct cqe cqe = {};
	u8 op_own = cqe_opcode(wc) << 4 | !!(cq->pi & cq->entries);

	if (((cq->pi - ci) & 0xffffff) >= cq->entries)
		return -ENOSPC;
	cqe.slid = cpu_to_be16(wc->slid);
	cqe.flags_rqpn = cpu_to_be32(wc->src_qp | (wc->flags & IB_WC_GRH ? 2 << 28 : 0));
	cqe.srqn_uidx = cpu_to_be32(own_qp(wc->qp)->uidx); /* in version 1, of an SRQ's receive too */
	cqe.imm = wc->imm;
	cqe.byte_cnt = cpu_to_be32(wc->byte_len);
	if (wc->status != IB_WC_SUCCESS)
		cqe.syndrome = PAPER_CODE(paper_syndromes, wc->status, 0x22);
	cqe.opcode_qpn = cpu_to_be32((wc->recv ? 0 : wc->wr->vendor) << 24 | wc->qp->num);
	cqe.wqe_counter = cpu_to_be16(wc->wr->index);
	memcpy(at, &cqe, offsetof(struct cqe, op_own));
	smp_wmb(); /* the owner bit gives the entry to the process */
	WRITE_ONCE(at->op_own, op_own);
	return 0;
}

/* Shared receive queues. */

static int create_srq(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct mlx5_ib_create_srq_resp resp = { .srqn = srq->num };
	struct msrq *m = own_srq(srq);
	struct mlx5_ib_create_srq req;
	size_t size;
	int err;

	err = paper_request(udata, &req, sizeof(req), offsetof(struct mlx5_ib_create_srq, uidx));
	if (err)
		return err;
	if (req.flags || req.db_addr & 3)
		return -EINVAL;
	m->max = roundup_pow_of_two(attr->attr.max_wr + 1);
	size = max_t(size_t, 32, roundup_pow_of_two(UNIT + attr->attr.max_sge * sizeof(struct data_seg)));
	if (size > MAX_DESC_RQ)
		return -EINVAL;
	m->shift = ilog2(size);
	m->sges = (size - UNIT) / sizeof(struct data_seg);
	err = paper_pin(srq->ib.device, &srq->buf, req.buf_addr, m->max * size, IB_ACCESS_LOCAL_WRITE) ?:
	      paper_pin(srq->ib.device, &srq->db, req.db_addr, 4, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	attr->attr.max_wr = srq->attr.max_wr = m->max - 1;
	attr->attr.max_sge = srq->attr.max_sge = m->sges;
	return paper_respond(udata, &resp, sizeof(resp));
}

static u32 srq_avail(struct paper_srq *srq)
{
	return (be32_to_cpu(READ_ONCE(*record(&srq->db, 0))) - srq->taken) & 0xffff;
}

static void read_elements(struct paper_wr *wr, const struct data_seg *at, unsigned int most)
{
	unsigned int i;

	wr->flags = 0;
	wr->nsge = 0;
	for (i = 0; i < min_t(unsigned int, most, PAPER_MAX_SGE) && at[i].lkey != cpu_to_be32(LKEY_NONE); i++)
		wr->sge[wr->nsge++] = (struct paper_sge){
			.addr = be64_to_cpu(at[i].addr),
			.len = be32_to_cpu(at[i].byte_count),
			.lkey = be32_to_cpu(at[i].lkey),
		};
}

static int next_srq_recv(struct paper_srq *srq, struct paper_wr *wr)
{
	struct msrq *m = own_srq(srq);
	u8 *at = srq->buf.va + ((size_t)m->head << m->shift);

	if (!srq_avail(srq))
		return 0;
	smp_rmb(); /* the request was written before the record */
	wr->index = m->head;
	read_elements(wr, (struct data_seg *)(at + UNIT), m->sges);
	m->head = be16_to_cpu(*(__be16 *)(at + 2)) & (m->max - 1); /* the list is the process's */
	return 1;
}

/* Queue pairs. */

static int create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct mlx5_ib_create_qp_resp resp = {};
	struct mqp *m = own_qp(qp);
	struct mlx5_ib_create_qp req;
	size_t rq, sq;
	int err;

	err = paper_request(udata, &req, sizeof(req), offsetof(struct mlx5_ib_create_qp, sq_buf_addr));
	if (err)
		return err;
	if (req.flags & (MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_BFREG_INDEX | MLX5_QP_FLAG_TYPE_DCT | MLX5_QP_FLAG_TYPE_DCI |
			 MLX5_QP_FLAG_TUNNEL_OFFLOADS | MLX5_QP_FLAG_UAR_PAGE_INDEX))
		return -EINVAL;
	if (req.sq_wqe_count > MAX_SQ || (req.sq_wqe_count && !is_power_of_2(req.sq_wqe_count)) || req.db_addr & 7)
		return -EINVAL;
	m->uidx = req.uidx & 0xffffff;
	m->sq_count = req.sq_wqe_count;
	if (!attr->srq && attr->cap.max_recv_wr) {
		if (!is_power_of_2(req.rq_wqe_count) || req.rq_wqe_count > MAX_RQ || req.rq_wqe_shift < 4 || req.rq_wqe_shift > 9)
			return -EINVAL;
		m->rq_count = req.rq_wqe_count;
		m->rq_shift = req.rq_wqe_shift;
	}
	rq = (size_t)m->rq_count << m->rq_shift;
	sq = (size_t)m->sq_count * WQE_BB;
	/* With an SRQ the library leaves room for the receives that it sized all the same. */
	if (attr->srq && req.rq_wqe_count) {
		if (req.rq_wqe_count > MAX_RQ || req.rq_wqe_shift > 9)
			return -EINVAL;
		rq = (size_t)req.rq_wqe_count << req.rq_wqe_shift;
	}
	if (qp->type == IB_QPT_RAW_PACKET) {
		if (sq)
			err = paper_pin(qp->ib.device, &qp->sq, req.sq_buf_addr, sq, IB_ACCESS_LOCAL_WRITE);
		if (!err && rq)
			err = paper_pin(qp->ib.device, &qp->buf, req.buf_addr, rq, IB_ACCESS_LOCAL_WRITE);
		m->sq = qp->sq.va;
	} else if (rq + sq) {
		err = paper_pin(qp->ib.device, &qp->buf, req.buf_addr, rq + sq, IB_ACCESS_LOCAL_WRITE);
		m->sq = qp->buf.va + rq;
	}
	if (err)
		return err;
	err = paper_pin(qp->ib.device, &qp->db, req.db_addr, 8, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	qp->cap.max_send_wr = 0; /* the library knows, and says it in its answer */
	qp->cap.max_send_sge = 0;
	qp->cap.max_recv_wr = m->rq_count;
	qp->cap.max_recv_sge = m->rq_count ? (1 << m->rq_shift) / sizeof(struct data_seg) : 0;
	return paper_respond(udata, &resp, sizeof(resp));
}

static void reset_qp(struct paper_qp *qp)
{
	own_qp(qp)->posted = 0;
}

static int next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	struct mqp *m = own_qp(qp);

	if (srq)
		return next_srq_recv(srq, wr);
	if (!m->rq_count || !((be32_to_cpu(READ_ONCE(*record(&qp->db, 0))) - qp->rq_ci) & 0xffff))
		return 0;
	smp_rmb(); /* the request was written before the record */
	wr->index = qp->rq_ci & 0xffff;
	read_elements(wr, qp->buf.va + ((size_t)(qp->rq_ci & (m->rq_count - 1)) << m->rq_shift),
		      (1 << m->rq_shift) / sizeof(struct data_seg));
	return 1;
}

/* unit returns the 16 bytes of a send request at an index, which goes round at the
 * end of the queue. */
static void *unit(const struct mqp *m, u32 index)
{
	return m->sq + (size_t)(index & (m->sq_count * (WQE_BB / UNIT) - 1)) * UNIT;
}

/* read_inline copies len bytes that begin behind the four of their header. */
static void read_inline(const struct mqp *m, u32 index, u8 *to, u32 len)
{
	u32 done, offset = sizeof(__be32);

	for (done = 0; done < len; done++, offset++)
		to[done] = ((u8 *)unit(m, index + offset / UNIT))[offset % UNIT];
}

static int opcode_of(const struct paper_wr *wr)
{
	static const u8 opcodes[] = { /* and one, for 0 is none */
		[OP_SEND] = IB_WR_SEND + 1,
		[OP_SEND_IMM] = IB_WR_SEND_WITH_IMM + 1,
		[OP_SEND_INVAL] = IB_WR_SEND_WITH_INV + 1,
		[OP_RDMA_WRITE] = IB_WR_RDMA_WRITE + 1,
		[OP_RDMA_WRITE_IMM] = IB_WR_RDMA_WRITE_WITH_IMM + 1,
		[OP_RDMA_READ] = IB_WR_RDMA_READ + 1,
		[OP_ATOMIC_CS] = IB_WR_ATOMIC_CMP_AND_SWP + 1,
		[OP_ATOMIC_FA] = IB_WR_ATOMIC_FETCH_AND_ADD + 1,
		[OP_UMR] = IB_WR_LOCAL_INV + 1, /* as libmlx5 does it; nothing is bound here */
	};

	return wr->vendor < ARRAY_SIZE(opcodes) && opcodes[wr->vendor] ? opcodes[wr->vendor] - 1 : -EINVAL;
}

static int next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	struct mqp *m = own_qp(qp);
	u32 at, end, ds, head, imm;
	__be32 *control;
	int opcode;

	if (!m->sq_count || (u16)be32_to_cpu(READ_ONCE(*record(&qp->db, 1))) == m->posted)
		return 0;
	smp_rmb(); /* the request was written before the record */
	at = (u32)m->posted * (WQE_BB / UNIT);
	control = unit(m, at);
	head = be32_to_cpu(control[0]);
	ds = be32_to_cpu(control[1]) & 0x3f;
	imm = (__force u32)control[3];
	wr->index = m->posted;
	wr->vendor = head & 0xff;
	wr->nsge = 0;
	wr->inline_len = 0;
	wr->flags = (be32_to_cpu(control[2]) & 2 << 2 ? IB_SEND_SIGNALED : 0) | (be32_to_cpu(control[2]) & 1 << 1 ? IB_SEND_SOLICITED : 0);
	wr->imm = (__force __be32)imm;
	wr->invalidate_rkey = be32_to_cpu(wr->imm);
	m->posted += max(1U, DIV_ROUND_UP(ds, WQE_BB / UNIT));
	opcode = opcode_of(wr);
	wr->opcode = opcode < 0 ? IB_WR_SEND : opcode;
	if (opcode < 0 || !ds)
		return -EINVAL;
	end = at + ds;
	at++;

	if (qp->type == IB_QPT_RAW_PACKET || opcode == IB_WR_LOCAL_INV)
		return 1;
	if (qp->type == IB_QPT_UD) {
		struct av av;
		unsigned int i;

		for (i = 0; i < sizeof(av) / UNIT; i++)
			memcpy((u8 *)&av + i * UNIT, unit(m, at + i), UNIT);
		at += sizeof(av) / UNIT;
		wr->to.qpn = be32_to_cpu(av.dqpn) & 0xffffff;
		wr->to.qkey = be32_to_cpu(av.qkey);
		wr->to.lid = be16_to_cpu(av.rlid);
		wr->to.global = to_paper_dev(qp->ib.device)->port.link == IB_LINK_LAYER_ETHERNET || be32_to_cpu(av.grh_gid_fl) & BIT(30);
		memcpy(wr->to.gid.raw, av.rgid, sizeof(av.rgid));
	}
	if (opcode == IB_WR_RDMA_WRITE || opcode == IB_WR_RDMA_WRITE_WITH_IMM || opcode == IB_WR_RDMA_READ ||
	    opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		wr->remote_addr = be64_to_cpup(unit(m, at));
		wr->rkey = be32_to_cpup(unit(m, at) + 8);
		at++;
	}
	if (opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		u64 first = be64_to_cpup(unit(m, at)), second = be64_to_cpup(unit(m, at) + 8);

		wr->swap = first;
		wr->compare_add = opcode == IB_WR_ATOMIC_FETCH_AND_ADD ? first : second;
		at++;
	}
	while (at < end) {
		const struct data_seg *seg = unit(m, at);
		u32 count = be32_to_cpu(READ_ONCE(seg->byte_count)); /* the process may change it after the check */

		if (count & BIT(31)) {
			count &= ~BIT(31);
			if (count > (end - at) * UNIT - sizeof(__be32) || count > PAPER_MAX_INLINE)
				return -EINVAL;
			read_inline(m, at, wr->inline_data, count);
			wr->inline_len = count;
			wr->flags |= IB_SEND_INLINE;
			return 1;
		}
		if (wr->nsge == PAPER_MAX_SGE)
			return -EINVAL;
		wr->sge[wr->nsge++] = (struct paper_sge){
			.addr = be64_to_cpu(seg->addr),
			.len = count,
			.lkey = be32_to_cpu(seg->lkey),
		};
		at++;
	}
	return 1;
}

const struct paper_vendor paper_mlx5 = {
	.name = "mlx5",
	.device = "mlx5_%d",
	.driver_id = RDMA_DRIVER_MLX5,
	.abi = MLX5_IB_UVERBS_ABI_VERSION,
	.pci_vendor = 0x15b3,
	.pci_device = 0x1021,
	.bus_driver = "mlx5_core",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 64,
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_UC) | BIT(IB_QPT_UD) | BIT(IB_QPT_RAW_PACKET),
	/*
	 * Part, firmware and vectors are those of ConnectX-7 adapters in public reports; no
	 * whole ibv_devinfo -v of one was found. The limits are those that a ConnectX-6 of
	 * firmware 20.37 shows; flags of what is not modelled here are left out.
	 */
	.limits = {
		.fw_ver = 28ULL << 32 | 39ULL << 16 | 1002,
		.vendor_id = 0x02c9,
		.vendor_part_id = 4129,
		.max_mr_size = ~0ULL,
		.page_size_cap = 0xfffffffffffff000,
		.max_qp = 131072,
		.max_qp_wr = MAX_SQ,
		.device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR | IB_DEVICE_AUTO_PATH_MIG |
				    IB_DEVICE_CHANGE_PHY_PORT | IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN,
		.max_send_sge = 30,
		.max_recv_sge = 32,
		.max_sge_rd = 30,
		.max_cq = 1 << 24,
		.max_cqe = MAX_CQ - 1,
		.max_mr = 1 << 24,
		.max_pd = 1 << 23,
		.max_qp_rd_atom = 16,
		.max_res_rd_atom = 2097152,
		.max_qp_init_rd_atom = 16,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_mcast_grp = 2097152,
		.max_mcast_qp_attach = 240,
		.max_total_mcast_qp_attach = 503316480,
		.max_ah = INT_MAX,
		.max_srq = 1 << 23,
		.max_srq_wr = MAX_RQ - 1,
		.max_srq_sge = 31,
		.max_pkeys = 128,
		.local_ca_ack_delay = 16,
	},
	.port = {
		.gid_tbl_len = 255,
		.port_cap_flags = IB_UVERBS_PCF_CM_SUP,
		.max_msg_sz = 0x40000000,
		.active_speed = IB_SPEED_NDR,
	},
	.take_netdev = paper_take_netdev,
	.give_netdev = paper_give_netdev,
	.query_device = query_device,
	.alloc_ucontext = alloc_ucontext,
	.mmap = mlx5_mmap,
	.create_ah = create_ah,
	.create_cq = create_cq,
	.create_srq = create_srq,
	.create_qp = create_qp,
	.next_send = next_send,
	.next_recv = next_recv,
	.srq_avail = srq_avail,
	.complete = write_cqe,
	.poll_arm = poll_arm,
	.reset_qp = reset_qp,
};
