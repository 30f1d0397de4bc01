// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A QLogic FastLinQ QL41000 as qedr of Linux 6.1 drives it, for RoCE, without direct
 * packet mode (as where its doorbells are too few, or on a virtual function).
 *
 * Runs for real: all of libqedr, from alloc_context to free_context, but XRC.
 *
 * Modelled, from drivers/infiniband/hw/qedr of Linux 6.1:
 *   qedr_query_device, qedr_query_port            verbs.c  attributes; max_srq_sge stays 0, for qedr_set_device_attr (main.c) leaves it out
 *   qedr_alloc_ucontext, qedr_mmap                verbs.c  doorbells, and a page for the copy that a library leaves of each
 *   qedr_create_cq, qedr_align_cq_entries         verbs.c  entries up to the end of a page; every error is EINVAL
 *   qedr_check_srq_params, _create_srq            verbs.c  refusals and log lines; too many scatter entries are logged, not refused
 *   qedr_modify_srq, qedr_query_srq               verbs.c  limits; the maxima of the device are queried, whatever was asked for
 *   qedr_check_qp_attrs, qedr_create_user_qp      verbs.c  refusals and log lines; max_recv_wr is not looked at
 *   qedr_modify_qp, qedr_query_qp                 verbs.c  refusals and log lines; the inline maximum of the device is queried
 *   qedr_reg_user_mr                              verbs.c  errors; a region that nobody may reach has no rkey
 *
 * The limits are of a QL41000 with firmware 8.37.7.0 (openucx/ucx, issue 5148); those that
 * its report ends before are the constants of the qed driver.
 *
 * The data path is written from libqedr (rdma-core 44, providers/qedr: qelr_verbs.c,
 * qelr_hsi_rdma.h), which must understand it, and from qed_roce_modify_qp of the qed driver:
 * a pair has a responder from RTR on and a requester from RTS on, and what was posted to a
 * side that never was made is not flushed. Doorbells are trapped. The copy that the library
 * leaves of each, for the case that one is lost, would not do: an arming can be overwritten
 * before it is read.
 *
 * Not modelled: XRC (and its capability flag is not set), iWARP, direct packet mode, the
 * kernel's own queues.
 */
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/qedr-abi.h>

#include "paper.h"

#define ELEMENT 16 /* of the rings of requests */
#define CQE_SIZE 32
#define SQ_ELEMENTS 18 /* of a send: ROCE_REQ_MAX_SINGLE_SQ_WQE_SIZE / ELEMENT */
#define RQ_ELEMENTS 4 /* RDMA_MAX_SGE_PER_RQ_WQE */

#define MAX_WR 0x7fff /* QED_RDMA_MAX_WQE */
#define MAX_SRQ_WR 0x7fff /* QED_RDMA_MAX_SRQ_WQE_ELEM */
#define MAX_SGE 4
#define MAX_INLINE 256 /* ROCE_REQ_MAX_INLINE_DATA_SIZE */
#define MAX_CQES 8388480 /* QEDR_MAX_CQES */
#define MAX_RD_ATOMIC 51 /* RDMA_RING_PAGE_SIZE / RDMA_REQ_RD_ATOMIC_ELM_SIZE */
#define MAX_DEST_RD_ATOMIC 64 /* RDMA_RING_PAGE_SIZE / (RDMA_RESP_RD_ATOMIC_ELM_SIZE * 2) */

/* Offsets of the doorbells: DQ_PWM_OFFSET_... << DB_PWM_ADDR_OFFSET_SHIFT. */
#define SQ_DOORBELL (0x42 << 3)
#define RQ_DOORBELL (0x59 << 3)
#define CQ_DOORBELL (0x4c << 3)

/* As DP_ERR of the driver has it. */
#define log_error(ib, fmt, ...) pr_err("[%s(%s)]" fmt, __func__, dev_name(&(ib)->dev), ##__VA_ARGS__)
#define refuse(err, ib, ...) (log_error(ib, __VA_ARGS__), (err))

/* What a process can map, by the number of its page. */
enum { PAGE_DOORBELLS = 1, PAGE_COPIES = 2 };

/* An element of a ring. */
struct pair {
	__le32 lo, hi;
};

union element {
	__le32 word[4];
	u8 byte[ELEMENT];
	__be64 inlined[2]; /* data comes with each 8 bytes turned around */
	struct { /* the first of a send */
		__le32 key_or_imm, length, xrc;
		u8 opcode, flags, size, previous;
	} head;
	struct { /* the second: not of a plain send */
		struct pair va;
		__le32 key, unused;
	} remote;
	struct { /* the third of an atomic */
		struct pair compare, swap_or_add;
	} atomic;
	struct {
		__le32 length;
		struct pair addr;
		__le32 key;
	} sq_sge;
	struct {
		struct pair addr;
		__le32 length, key; /* 26 bits, and in the first of a receive, how many there are */
	} rq_sge;
	struct { /* before each receive of an SRQ */
		struct pair id;
		u8 n, unused[7];
	} srq_head;
	struct {
		struct pair addr;
		__le32 length, key;
	} srq_sge;
};
static_assert(sizeof(union element) == ELEMENT);

enum send_opcode {
	OP_SEND,
	OP_SEND_IMM,
	OP_SEND_INVALIDATE,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_COMPARE_SWAP,
	OP_FETCH_ADD,
};
#define SEND_SIGNALED BIT(0)
#define SEND_SOLICITED BIT(3)
#define SEND_INLINE BIT(4)

/* What a doorbell says: the number of a context, then 16 bits of a producer, or flags and
 * 32 bits of a consumer. */
#define DB_CONTEXT(value) ((u16)(value))
#define DB_PRODUCER(value) ((u16)((value) >> 16))
#define DB_CONSUMER(value) ((u32)((value) >> 32))
#define DB_ARM_SOLICITED BIT_ULL(16 + 3) /* DQ_UCM_ROCE_CQ_ARM_SE_CF_CMD */
#define DB_ARM BIT_ULL(16 + 4) /* DQ_UCM_ROCE_CQ_ARM_CF_CMD */

struct qedr_cqe {
	union {
		struct {
			__le16 consumer, pad;
			__le32 unused;
		} send;
		struct pair srq_id;
	};
	struct pair handle;
	__le32 imm_or_key, length, imm_high;
	__le16 consumer; /* of a receive that was flushed */
	u8 flags, status;
};
static_assert(sizeof(struct qedr_cqe) == CQE_SIZE);

enum cqe_type { CQE_SEND, CQE_RECV, CQE_RECV_SRQ };
#define CQE_TOGGLE BIT(0)
#define CQE_TYPE(type) ((type) << 1)
#define CQE_INVALIDATE BIT(3)
#define CQE_IMM BIT(4)
#define CQE_RDMA BIT(5)

struct qedr_cq {
	struct paper_ucontext *ctx;
	unsigned long ci; /* how many the process has taken, ever */
};

struct qedr_srq {
	unsigned long limit; /* as the driver remembers it: not reset by the event */
	unsigned long next; /* element */
	unsigned long taken; /* receives, ever */
};

struct qedr_qp {
	struct paper_ucontext *ctx;
	u64 handle; /* what completions name the pair by */
	unsigned long sq_producer, rq_producer; /* requests, since RESET; 16 bits */
	unsigned long sq_taken, rq_taken;
	unsigned long sq_next, rq_next; /* elements */
	unsigned long requester, responder; /* were made */
};

PAPER_OWN(own_cq, qedr_cq, paper_cq)
PAPER_OWN(own_srq, qedr_srq, paper_srq)
PAPER_OWN(own_qp, qedr_qp, paper_qp)

/* Doorbells. */

static void cq_doorbell(struct paper_cq *cq, u64 value)
{
	if ((s32)(cq->pi - DB_CONSUMER(value)) < 0)
		return;
	own_cq(cq)->ci = DB_CONSUMER(value);
	if (value & (DB_ARM | DB_ARM_SOLICITED))
		paper_arm(cq, value & DB_ARM ? PAPER_ARM_NEXT : PAPER_ARM_SOLICITED, DB_CONSUMER(value));
}

static void qedr_stored(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	struct paper_qp *qp;
	struct paper_cq *cq;

	if (offset == CQ_DOORBELL && size == sizeof(u64)) {
		cq = xa_load(&dev->cqs, DB_CONTEXT(value));
		if (cq && own_cq(cq)->ctx == ctx)
			cq_doorbell(cq, value);
	} else if ((offset == SQ_DOORBELL || offset == RQ_DOORBELL) && size == sizeof(u32)) {
		qp = xa_load(&dev->qps, DB_CONTEXT(value) / 2);
		if (qp && own_qp(qp)->ctx == ctx && offset == SQ_DOORBELL)
			own_qp(qp)->sq_producer = DB_PRODUCER(value);
		else if (qp && own_qp(qp)->ctx == ctx)
			own_qp(qp)->rq_producer = DB_PRODUCER(value);
	}
}

static int qedr_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_pgoff == PAGE_DOORBELLS)
		return paper_mmap_trapped(ctx, vma, qedr_stored, 0);
	return vma->vm_pgoff == PAGE_COPIES ? paper_mmap_ignored(ctx, vma) : -EINVAL;
}

static int qedr_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct qedr_alloc_ucontext_resp resp = {
		.db_pa = PAGE_DOORBELLS * PAGE_SIZE,
		.db_size = PAGE_SIZE,
		.max_send_wr = MAX_WR,
		.max_recv_wr = MAX_WR,
		.max_srq_wr = MAX_SRQ_WR,
		.sges_per_send_wr = SQ_ELEMENTS,
		.sges_per_recv_wr = RQ_ELEMENTS,
		.max_cqes = MAX_CQES,
		.wids_enabled = 1,
	};
	struct qedr_alloc_ucontext_req req;

	if (paper_request(udata, &req, sizeof(req), 0))
		return -EFAULT;
	if (req.context_flags & QEDR_SUPPORT_DPM_SIZES) {
		resp.dpm_flags = QEDR_DPM_SIZES_SET;
		resp.ldpm_limit_size = QEDR_LDPM_MAX_SIZE;
		resp.edpm_trans_size = QEDR_EDPM_TRANS_SIZE;
		resp.edpm_limit_size = MAX_INLINE;
	}
	return paper_respond(udata, &resp, sizeof(resp));
}

static struct ib_mr *qedr_reg_user_mr(struct ib_pd *ib, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata)
{
	struct ib_mr *mr;

	if (access & IB_ACCESS_REMOTE_WRITE && !(access & IB_ACCESS_LOCAL_WRITE))
		return ERR_PTR(-EINVAL);
	mr = paper_reg_user_mr(ib, start, length, virt, access, udata);
	if (IS_ERR(mr))
		return ERR_PTR(-EFAULT); /* whatever the reason */
	if (!(access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)))
		mr->rkey = 0;
	return mr;
}

/* Completion queues. */

static int qedr_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct qedr_create_cq_uresp resp = { .db_offset = CQ_DOORBELL, .icid = cq->num, .db_rec_addr = PAGE_COPIES * PAGE_SIZE };
	struct qedr_create_cq_ureq req;
	size_t size;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe > MAX_CQES)
		return refuse(-EINVAL, cq->ib.device, "create cq: the number of entries %d is too high. Must be equal or below %d.\n",
				    attr->cqe, MAX_CQES);
	if (paper_request(udata, &req, sizeof(req), 0))
		return -EINVAL;
	if (!req.len)
		return refuse(-EINVAL, cq->ib.device, "create cq: cannot create a cq with 0 entries\n");
	/* One more than is asked for, and what is left of the last page. */
	size = PAGE_ALIGN(((size_t)attr->cqe + 1) * CQE_SIZE);
	cq->entries = min_t(size_t, size / CQE_SIZE, MAX_CQES);
	cq->ib.cqe = cq->entries;
	if (req.len < (size_t)cq->entries * CQE_SIZE)
		return -EINVAL;
	if (paper_pin(cq->ib.device, &cq->buf, req.addr, (size_t)cq->entries * CQE_SIZE, IB_ACCESS_LOCAL_WRITE))
		return refuse(-EINVAL, cq->ib.device, "create user queue: failed ib_umem_get\n");
	own_cq(cq)->ctx = ctx;
	return paper_respond(udata, &resp, sizeof(resp)) ? -EINVAL : 0;
}

/* Shared receive queues. */

static int qedr_create_any_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	u32 sge = attr->attr.max_sge;
	int err;

	if (attr->attr.max_wr > MAX_SRQ_WR)
		return refuse(-EINVAL, ib->device, "create srq: unsupported srq_wr=0x%x requested (max_srq_wr=0x%x)\n",
				    attr->attr.max_wr, MAX_SRQ_WR);
	if (sge > MAX_SGE)
		log_error(ib->device, "create srq: unsupported sge=0x%x requested (max_srq_sge=0x%x)\n", sge, MAX_SGE);
	attr->attr.max_sge = 0; /* any number will do */
	err = paper_create_srq(ib, attr, udata);
	attr->attr.max_sge = sge;
	return err;
}

static int qedr_create_srq(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	/* The library has room for as many scatter entries as a receive can have, and a header. */
	size_t least = (size_t)attr->attr.max_wr * (RQ_ELEMENTS + 1) * ELEMENT;
	struct qedr_create_srq_uresp resp = { .srq_id = srq->num };
	struct qedr_create_srq_ureq req;

	if (paper_request(udata, &req, sizeof(req), 0))
		return -EFAULT;
	if (req.srq_len < least || req.srq_len > PAGE_ALIGN(least))
		return -EFAULT;
	if (paper_pin(srq->ib.device, &srq->buf, req.srq_addr, req.srq_len, 0) ||
	    paper_pin(srq->ib.device, &srq->db, req.prod_pair_addr, 2 * sizeof(u32), 0))
		return refuse(-EFAULT, srq->ib.device, "create user queue: failed ib_umem_get\n");
	return paper_respond(udata, &resp, sizeof(resp)) ? -EFAULT : 0;
}

static int qedr_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct paper_srq *srq = to_paper_srq(ib);

	if (mask & IB_SRQ_MAX_WR)
		return refuse(-EINVAL, ib->device, "modify srq: invalid attribute mask=0x%x specified for %p\n", mask, srq);
	if (mask & IB_SRQ_LIMIT && attr->srq_limit >= srq->attr.max_wr)
		return refuse(-EINVAL, ib->device, "modify srq: invalid srq_limit=0x%x (max_srq_limit=0x%x)\n",
				    attr->srq_limit, srq->attr.max_wr);
	own_srq(srq)->limit = attr->srq_limit;
	return paper_modify_srq(ib, attr, mask, udata);
}

static int qedr_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	attr->srq_limit = own_srq(to_paper_srq(ib))->limit;
	attr->max_wr = MAX_SRQ_WR;
	attr->max_sge = MAX_SGE;
	return 0;
}

/* Queue pairs. */

static int qedr_create_any_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct ib_qp_cap *cap = &attr->cap;
	u32 recv_wr = cap->max_recv_wr;
	int err;

	if (attr->create_flags)
		return -EOPNOTSUPP;
	if (attr->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (cap->max_send_wr > MAX_WR)
		return refuse(-EINVAL, ib->device, "create qp: cannot create a SQ with %d elements (max_send_wr=0x%x)\n",
				    cap->max_send_wr, MAX_WR);
	if (cap->max_inline_data > MAX_INLINE)
		return refuse(-EINVAL, ib->device, "create qp: unsupported inline data size=0x%x requested (max_inline=0x%x)\n",
				    cap->max_inline_data, MAX_INLINE);
	if (cap->max_send_sge > MAX_SGE)
		return refuse(-EINVAL, ib->device, "create qp: unsupported send_sge=0x%x requested (max_send_sge=0x%x)\n",
				    cap->max_send_sge, MAX_SGE);
	if (cap->max_recv_sge > MAX_SGE)
		return refuse(-EINVAL, ib->device, "create qp: unsupported recv_sge=0x%x requested (max_recv_sge=0x%x)\n",
				    cap->max_recv_sge, MAX_SGE);
	/* The driver takes any number of receives, and the library makes room for MAX_WR at most. */
	cap->max_recv_wr = min_t(u32, recv_wr, MAX_WR);
	err = paper_create_qp(ib, attr, udata);
	cap->max_recv_wr = recv_wr;
	if (!err && !attr->srq)
		to_paper_qp(ib)->cap.max_recv_wr = recv_wr;
	return err;
}

/* pin_ring pins a ring of requests, which has at least one of them. */
static int pin_ring(struct paper_qp *qp, struct paper_mem *mem, u64 addr, u64 len, u32 requests, unsigned int elements)
{
	size_t least = (size_t)max_t(u32, requests, 1) * elements * ELEMENT;
	int err;

	if (len < least || len > PAGE_ALIGN(least))
		return -EINVAL;
	err = paper_pin(qp->ib.device, mem, addr, len, 0);
	if (err)
		log_error(qp->ib.device, "create user queue: failed ib_umem_get, got %d\n", err);
	return err;
}

static int qedr_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct qedr_create_qp_uresp resp = {
		.qp_id = qp->num,
		.atomic_supported = 1,
		.sq_db_offset = SQ_DOORBELL,
		.sq_icid = 2 * qp->num + 1,
		.sq_db_rec_addr = PAGE_COPIES * PAGE_SIZE,
	};
	struct qedr_create_qp_ureq req;
	int err;

	if (paper_request(udata, &req, sizeof(req), 0))
		return -EFAULT;
	err = pin_ring(qp, &qp->sq, req.sq_addr, req.sq_len, attr->cap.max_send_wr, SQ_ELEMENTS);
	if (err)
		return err;
	if (qp->srq) {
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	} else {
		err = pin_ring(qp, &qp->rq, req.rq_addr, req.rq_len, attr->cap.max_recv_wr, RQ_ELEMENTS);
		if (err)
			return err;
		resp.rq_db_offset = RQ_DOORBELL;
		resp.rq_icid = 2 * qp->num;
		resp.rq_db_rec_addr = PAGE_COPIES * PAGE_SIZE;
	}
	own_qp(qp)->ctx = ctx;
	own_qp(qp)->handle = (u64)req.qp_handle_hi << 32 | req.qp_handle_lo;
	qp->cap.max_inline_data = MAX_INLINE; /* whatever was asked for */
	return paper_respond(udata, &resp, sizeof(resp));
}

/* note_state sees which sides of a pair there are. */
static void note_state(struct paper_qp *qp, enum ib_qp_state state)
{
	if (state == IB_QPS_RTR)
		own_qp(qp)->responder = true;
	else if (state == IB_QPS_RTS || state == IB_QPS_SQD)
		own_qp(qp)->responder = own_qp(qp)->requester = true;
}

static int qedr_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state from = READ_ONCE(qp->attr.qp_state);
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct ib_device *ib = qp->ib.device;

	if (!ib_modify_qp_is_ok(from, to, qp->type, mask))
		return refuse(-EINVAL, ib, "modify qp: invalid attribute mask=0x%x specified for\nqpn=0x%x of type=0x%x old_qp_state=0x%x, new_qp_state=0x%x\n",
				      mask, qp->num, qp->type, from, to);
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096)) {
		pr_err("error: Only MTU sizes of 256, 512, 1024, 2048 and 4096 are supported by RoCE\n");
		return -EINVAL;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > MAX_RD_ATOMIC)
		return refuse(-EINVAL, ib, "unsupported max_rd_atomic=%d, supported=%d\n", attr->max_rd_atomic, MAX_RD_ATOMIC);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_DEST_RD_ATOMIC)
		return refuse(-EINVAL, ib, "unsupported max_dest_rd_atomic=%d, supported=%d\n",
				    attr->max_dest_rd_atomic, MAX_DEST_RD_ATOMIC);
	note_state(qp, from);
	return 0;
}

static int qedr_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	const struct paper_dev *dev = to_paper_dev(ib->device);
	int err = paper_query_qp(ib, attr, mask, init);

	if (err)
		return err;
	attr->qp_access_flags |= IB_ACCESS_LOCAL_WRITE;
	attr->port_num = 1;
	if (attr->path_mtu)
		attr->path_mtu = min_t(enum ib_mtu, attr->path_mtu, iboe_get_mtu(dev->port.netdev->mtu));
	return 0;
}

/* The data path. */

static u64 joined(struct pair pair)
{
	return (u64)le32_to_cpu(pair.hi) << 32 | le32_to_cpu(pair.lo);
}

static struct pair split(u64 v)
{
	return (struct pair){ .lo = cpu_to_le32(lower_32_bits(v)), .hi = cpu_to_le32(upper_32_bits(v)) };
}

static unsigned long elements_of(const struct paper_mem *mem)
{
	return mem->len / ELEMENT;
}

/* element copies an element of a ring, for the process may change it meanwhile. */
static union element element(const struct paper_mem *mem, unsigned long number)
{
	union element e = ((union element *)mem->va)[number % elements_of(mem)];

	barrier();
	return e;
}

static int read_send(struct paper_qp *qp, struct paper_wr *wr, union element head)
{
	static const enum ib_wr_opcode opcodes[] = {
		[OP_SEND] = IB_WR_SEND,
		[OP_SEND_IMM] = IB_WR_SEND_WITH_IMM,
		[OP_SEND_INVALIDATE] = IB_WR_SEND_WITH_INV,
		[OP_WRITE] = IB_WR_RDMA_WRITE,
		[OP_WRITE_IMM] = IB_WR_RDMA_WRITE_WITH_IMM,
		[OP_READ] = IB_WR_RDMA_READ,
		[OP_COMPARE_SWAP] = IB_WR_ATOMIC_CMP_AND_SWP,
		[OP_FETCH_ADD] = IB_WR_ATOMIC_FETCH_AND_ADD,
	};
	bool atomic = head.head.opcode == OP_COMPARE_SWAP || head.head.opcode == OP_FETCH_ADD;
	unsigned long at = own_qp(qp)->sq_next;
	unsigned int i, first = atomic ? 3 : 2, size = head.head.size;
	union element e;

	if (head.head.opcode >= ARRAY_SIZE(opcodes) || size < first || size > SQ_ELEMENTS)
		return -EINVAL;
	wr->opcode = opcodes[head.head.opcode];
	wr->flags = (head.head.flags & SEND_SIGNALED ? IB_SEND_SIGNALED : 0) | (head.head.flags & SEND_SOLICITED ? IB_SEND_SOLICITED : 0);
	if (wr->opcode == IB_WR_SEND_WITH_INV)
		wr->invalidate_rkey = le32_to_cpu(head.head.key_or_imm);
	else
		wr->imm = cpu_to_be32(le32_to_cpu(head.head.key_or_imm));
	e = element(&qp->sq, at + 1);
	wr->remote_addr = joined(e.remote.va);
	wr->rkey = le32_to_cpu(e.remote.key);
	if (atomic) {
		e = element(&qp->sq, at + 2);
		wr->swap = joined(e.atomic.swap_or_add);
		wr->compare_add = wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD ? wr->swap : joined(e.atomic.compare);
	}
	if (head.head.flags & SEND_INLINE) {
		wr->flags |= IB_SEND_INLINE;
		wr->inline_len = le32_to_cpu(head.head.length);
		if (atomic || wr->opcode == IB_WR_RDMA_READ || wr->inline_len > MAX_INLINE || wr->inline_len > (size - first) * ELEMENT)
			return -EINVAL;
		for (i = 0; i * ELEMENT < wr->inline_len; i++) {
			u64 word[2];

			e = element(&qp->sq, at + first + i);
			word[0] = be64_to_cpu(e.inlined[0]);
			word[1] = be64_to_cpu(e.inlined[1]);
			memcpy(wr->inline_data + i * ELEMENT, word, ELEMENT);
		}
		return 1;
	}
	if (size - first > MAX_SGE)
		return -EINVAL;
	wr->nsge = size - first;
	for (i = 0; i < wr->nsge; i++) {
		e = element(&qp->sq, at + first + i);
		wr->sge[i] = (struct paper_sge){ joined(e.sq_sge.addr), le32_to_cpu(e.sq_sge.length), le32_to_cpu(e.sq_sge.key) };
	}
	return 1;
}

static int qedr_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	struct qedr_qp *own = own_qp(qp);
	union element head;
	int got;

	note_state(qp, paper_state(qp));
	if (!own->requester || own->sq_producer == (u16)own->sq_taken)
		return 0;
	smp_rmb();
	memset(wr, 0, sizeof(*wr));
	head = element(&qp->sq, own->sq_next);
	got = read_send(qp, wr, head);
	own->sq_next = (own->sq_next + head.head.size) % elements_of(&qp->sq);
	wr->index = ++own->sq_taken;
	return got;
}

static int next_of_srq(struct paper_srq *srq, struct paper_wr *wr)
{
	struct qedr_srq *own = own_srq(srq);
	union element head = element(&srq->buf, own->next), e;
	unsigned int i, n = min_t(unsigned int, head.srq_head.n, RQ_ELEMENTS);

	wr->id = joined(head.srq_head.id);
	wr->nsge = n;
	for (i = 0; i < n; i++) {
		e = element(&srq->buf, own->next + 1 + i);
		wr->sge[i] = (struct paper_sge){ joined(e.srq_sge.addr), le32_to_cpu(e.srq_sge.length), le32_to_cpu(e.srq_sge.key) };
	}
	own->next = (own->next + 1 + n) % elements_of(&srq->buf);
	own->taken++;
	return 1;
}

static u32 qedr_srq_avail(struct paper_srq *srq)
{
	/* How many elements were produced, and how many receives. */
	u32 produced = le32_to_cpu(READ_ONCE(((__le32 *)srq->db.va)[1]));

	return min_t(u32, produced - (u32)own_srq(srq)->taken, srq->attr.max_wr);
}

static int qedr_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	struct qedr_qp *own = own_qp(qp);
	union element e;
	unsigned int i;

	note_state(qp, paper_state(qp));
	memset(wr, 0, sizeof(*wr));
	if (srq) {
		if (!qedr_srq_avail(srq))
			return 0;
		smp_rmb();
		return next_of_srq(srq, wr);
	}
	if (!own->responder || own->rq_producer == (u16)own->rq_taken)
		return 0;
	smp_rmb();
	e = element(&qp->rq, own->rq_next);
	wr->nsge = clamp_t(unsigned int, le32_to_cpu(e.rq_sge.key) >> 26 & 7, 1, RQ_ELEMENTS);
	for (i = 0; i < wr->nsge; i++) {
		e = element(&qp->rq, own->rq_next + i);
		wr->sge[i] = (struct paper_sge){ joined(e.rq_sge.addr), le32_to_cpu(e.rq_sge.length), le32_to_cpu(e.rq_sge.key) & 0x3ffffff };
	}
	own->rq_next = (own->rq_next + wr->nsge) % elements_of(&qp->rq);
	wr->index = ++own->rq_taken;
	return 1;
}

static u8 recv_status(enum ib_wc_status status)
{
	static const u8 codes[] = {
		[IB_WC_LOC_ACCESS_ERR] = 1,
		[IB_WC_LOC_LEN_ERR] = 2,
		[IB_WC_LOC_QP_OP_ERR] = 3,
		[IB_WC_LOC_PROT_ERR] = 4,
		[IB_WC_REM_INV_REQ_ERR] = 6,
	};

	return PAPER_CODE(codes, status, 7); /* flushed */
}

static int qedr_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	struct qedr_cqe *at = cq->buf.va + (size_t)(cq->pi % cq->entries) * CQE_SIZE;
	struct qedr_cqe cqe = { .handle = split(own_qp(wc->qp)->handle) };
	/* It turns around with each round; entries that were never written have it clear. */
	u8 flags = cq->pi / cq->entries & 1 ? 0 : CQE_TOGGLE;

	if (cq->pi - (u32)own_cq(cq)->ci >= cq->entries - 1)
		return -ENOSPC;
	if (!wc->recv) {
		cqe.send.consumer = cpu_to_le16(wc->wr->index);
		cqe.status = PAPER_CODE(paper_requester_errors, wc->status, 11 /* flushed */);
		flags |= CQE_TYPE(CQE_SEND);
	} else {
		if (wc->srq)
			cqe.srq_id = split(wc->wr->id);
		flags |= CQE_TYPE(wc->srq ? CQE_RECV_SRQ : CQE_RECV);
		cqe.consumer = cpu_to_le16(wc->wr->index);
		cqe.length = cpu_to_le32(wc->byte_len);
		cqe.imm_or_key = cpu_to_le32(be32_to_cpu(wc->imm));
		cqe.status = recv_status(wc->status);
		if (wc->flags & IB_WC_WITH_IMM)
			flags |= CQE_IMM;
		if (wc->flags & IB_WC_WITH_INVALIDATE)
			flags |= CQE_INVALIDATE;
		if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
			flags |= CQE_RDMA;
	}
	memcpy(at, &cqe, offsetof(struct qedr_cqe, flags));
	at->status = cqe.status;
	smp_wmb();
	WRITE_ONCE(at->flags, flags);
	return 0;
}

static void qedr_reset_qp(struct paper_qp *qp)
{
	struct qedr_qp *own = own_qp(qp);

	own->sq_producer = own->rq_producer = 0;
	own->sq_taken = own->rq_taken = 0;
	own->sq_next = own->rq_next = 0;
	own->requester = own->responder = false;
}

/* 8.37.7.0 */
static void qedr_fw_str(struct ib_device *ib, char *str)
{
	u32 v = to_paper_dev(ib)->vendor->limits.fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff, v & 0xff);
}

static const struct ib_device_ops qedr_ops = {
	.create_qp = qedr_create_any_qp,
	.create_srq = qedr_create_any_srq,
	.get_dev_fw_str = qedr_fw_str,
	.modify_srq = qedr_modify_srq,
	.query_qp = qedr_query_qp,
	.query_srq = qedr_query_srq,
	.reg_user_mr = qedr_reg_user_mr,
};

const struct paper_vendor paper_qedr = {
	.name = "qedr",
	.device = "qedr%d",
	.driver_id = RDMA_DRIVER_QEDR,
	.abi = QEDR_ABI_VERSION,
	.pci_vendor = 0x1077,
	.pci_device = 0x8070,
	.bus_driver = "qede",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 8, /* one for each processor of a host */
	.qp_types = BIT(IB_QPT_RC),
	.limits = {
		.fw_ver = 8 << 24 | 37 << 16 | 7 << 8,
		.max_mr_size = 0x10000000000,
		.page_size_cap = 0xfffff000,
		.max_qp = 8568,
		.max_qp_wr = MAX_WR,
		.device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_MEM_MGT_EXTENSIONS,
		.max_send_sge = MAX_SGE,
		.max_recv_sge = MAX_SGE,
		.max_sge_rd = MAX_SGE,
		.max_cq = 17136,
		.max_cqe = MAX_CQES,
		.max_mr = 131070,
		.max_pd = 65536,
		.max_qp_rd_atom = 32,
		.max_qp_init_rd_atom = 32,
		.atomic_cap = IB_ATOMIC_GLOB,
		.max_ah = 8568, /* as many as queue pairs */
		.max_srq = 4096, /* what the library has a table for, at least */
		.max_srq_wr = MAX_SRQ_WR,
		.max_fast_reg_page_list_len = 131070 / 8,
		.local_ca_ack_delay = 15, /* QED_RDMA_ACK_DELAY */
	},
	.port = {
		.gid_tbl_len = 128, /* QEDR_MAX_SGID */
		.max_msg_sz = 0x80000000, /* RDMA_MAX_DATA_SIZE_IN_WQE */
		.max_vl_num = 4,
		.active_width = IB_WIDTH_1X,
	},
	.ops = &qedr_ops,
	.alloc_ucontext = qedr_alloc_ucontext,
	.mmap = qedr_mmap,
	.create_cq = qedr_create_cq,
	.create_srq = qedr_create_srq,
	.create_qp = qedr_create_qp,
	.modify_qp = qedr_modify_qp,
	.next_send = qedr_next_send,
	.next_recv = qedr_next_recv,
	.srq_avail = qedr_srq_avail,
	.complete = qedr_complete,
	.reset_qp = qedr_reset_qp,
};
