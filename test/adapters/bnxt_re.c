// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A Broadcom BCM57508 ("Thor") as bnxt_re of Linux 6.1 drives it, in its default mode:
 * work requests of a fixed 128 bytes.
 *
 * Runs for real: all of libbnxt_re, from alloc_context to free_context.
 *
 * Modelled, from drivers/infiniband/hw/bnxt_re of Linux 6.1:
 *   bnxt_re_query_device, bnxt_re_query_port     ib_verbs.c   attributes; bnxt_qplib_get_dev_attr (qplib_sp.c) the limits
 *   bnxt_re_alloc_ucontext, bnxt_re_mmap         ib_verbs.c   the page that address handles are told in, the doorbell page
 *   bnxt_re_alloc_pd                             ib_verbs.c   the doorbell page is told with a PD, and not before
 *   bnxt_re_create_ah                            ib_verbs.c   its number lies in the shared page; without GRH EINVAL and a log line
 *   bnxt_re_create_cq                            ib_verbs.c   rounding; one too large: EINVAL and a log line
 *   bnxt_re_create_srq, _modify_srq, _query_srq  ib_verbs.c   likewise; written back as asked, queried as rounded
 *   bnxt_re_test_qp_limits, _init_qp_type        ib_verbs.c   refusals and their log lines
 *   bnxt_re_init_sq_attr, _init_rq_attr,
 *   bnxt_re_setup_swqe_size, _init_user_qp       ib_verbs.c   sizes, inline, what is pinned
 *   bnxt_re_modify_qp, bnxt_re_query_qp          ib_verbs.c   refusals and their log lines; access flags that nobody asked for
 *   bnxt_re_reg_user_mr                          ib_verbs.c   lkey and rkey are the same; errors and log lines
 *
 * The data path is written from libbnxt_re (rdma-core 44, providers/bnxt_re: db.c, verbs.c,
 * bnxt_re-abi.h), which must understand it: doorbells are trapped, for they are all that a
 * device learns of posting, polling and arming. A queue pair in the error state is told of
 * by one completion of type "terminal" (bnxt_re_poll_term_cqe) in each of its completion
 * queues; the library then makes up the flushed ones. That a device does so, and when, is
 * concluded from the library and from bnxt_qplib_cq_process_terminal (qplib_fp.c), where
 * the index of a ring that such a completion does not speak of is 0xffff. Of what is posted
 * later the device tells nothing: bnxt_qplib_post_send does not even ring it, and raises
 * an event of its own.
 *
 * What the firmware reports is not public: the limits below are the driver's own where
 * it has one (max_pd, max_sgid, the atomics, six scatter entries, the cap on the objects),
 * else they are what its commands and its doorbells can carry.
 *
 * Not modelled: QP1, memory windows, fast registration, statistics, and the notification
 * queues, which the driver takes in turn whatever completion vector was asked for.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/pci_ids.h>
#include <rdma/bnxt_re-abi.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "paper.h"

#define WQE_SIZE 128 /* bnxt_re_get_swqe_size(6): a header of 32 bytes, 6 scatter entries of 16 */
#define WQE_HEADER 32
#define SGE_SIZE 16
#define CQE_SIZE 32 /* struct cq_base */
#define PSN_SIZE 16 /* struct sq_psn_search_ext */
#define RESERVED_WRS 128 /* BNXT_QPLIB_RESERVED_QP_WRS */

#define MAX_SGE 6
#define MAX_INLINE (MAX_SGE * SGE_SIZE)
#define MAX_WR (0xffff - 1 - (RESERVED_WRS + 1)) /* the firmware's limit has 16 bits; less those reserved */
#define MAX_CQE ((1 << 20) - 1) /* a doorbell's index has 20 bits */
#define MAX_SRQ_WR (0xffff - 1) /* CREATE_SRQ has 16 bits for it */
#define MAX_RD_ATOM 126 /* BNXT_QPLIB_MAX_OUT_RD_ATOM */
#define MAX_MR_SIZE BIT_ULL(39) /* BNXT_RE_MAX_MR_SIZE */
#define START_PHASE 1 /* BNXT_QPLIB_QUEUE_START_PERIOD */

/* What a doorbell of 64 bits says: an index of 20 bits, the number of a queue, and: */
enum doorbell { DB_SQ, DB_RQ, DB_SRQ, DB_SRQ_ARM, DB_CQ, DB_CQ_ARM_SOLICITED, DB_CQ_ARM_ALL };
#define DB_INDEX(value) ((u32)(value) & 0xfffff)
#define DB_NUMBER(value) ((u32)((value) >> 32) & 0xfffff)
#define DB_TYPE(value) ((value) >> 60)

/* A request: opcode, flags and length in 16 bytes are in its first word. */
struct bnxt_wqe {
	__le32 head;
	union {
		__le32 key_or_imm; /* of a send */
		__le32 unused;
	};
	union {
		struct {
			__le32 length, qkey;
		};
		__le64 atomic_va;
		__le32 id; /* of a receive, chosen by the library */
	};
	union {
		struct {
			__le32 qpn, ah;
		} send;
		struct {
			__le64 va;
			__le32 key;
		} rdma;
		struct {
			__le64 swap_or_add, compare;
		} atomic;
		u8 pad[16];
	};
	union {
		struct {
			__le64 addr;
			__le32 key, length;
		} sge[MAX_SGE];
		u8 data[MAX_INLINE];
	};
};
static_assert(sizeof(struct bnxt_wqe) == WQE_SIZE);

enum wqe_opcode {
	OP_SEND = 0x00,
	OP_SEND_IMM = 0x01,
	OP_WRITE = 0x04,
	OP_WRITE_IMM = 0x05,
	OP_READ = 0x06,
	OP_COMPARE_SWAP = 0x08,
	OP_FETCH_ADD = 0x0b,
	OP_RECV = 0x80,
};
#define WQE_SIGNALED BIT(0)
#define WQE_SOLICITED BIT(3)
#define WQE_INLINE BIT(4)

struct bnxt_cqe {
	union {
		struct {
			__le64 handle;
			__le32 index; /* of the request after the last complete one */
			u8 pad[12];
		} send;
		struct {
			__le32 length, imm;
			__le64 handle;
			__le64 source; /* of a datagram: 16 bits of its queue pair's number, and its MAC address */
		} recv;
	};
	__le32 head; /* phase, type, status, flags */
	__le32 id; /* of a receive of an SRQ, and 8 bits of a source's number */
};
static_assert(sizeof(struct bnxt_cqe) == CQE_SIZE);

enum cqe_type { CQE_SEND = 0x0, CQE_RECV = 0x1, CQE_RECV_UD = 0x2, CQE_TERMINAL = 0xe };
#define CQE_FROM_SRQ BIT(0)
#define CQE_IMM BIT(1)
#define CQE_RDMA BIT(3)

struct bnxt_ucontext {
	struct page *shared;
};

struct bnxt_cq {
	struct paper_ucontext *ctx;
	unsigned long ci; /* how many the process has taken, ever */
};

struct bnxt_srq {
	struct paper_ucontext *ctx;
	unsigned long entries;
	unsigned long producer, taken; /* indices into the ring */
};

struct bnxt_qp {
	struct paper_ucontext *ctx;
	u64 handle; /* what completions name the pair by */
	unsigned long sq_entries, rq_entries;
	unsigned long sq_producer, rq_producer; /* indices into the rings */
	unsigned long sq_taken, rq_taken;
	unsigned long sq_told; /* sends up to here are complete */
	unsigned long terminated; /* a bit for the queue of its sends, one for that of its receives */
};

PAPER_OWN(own_ctx, bnxt_ucontext, paper_ucontext)
PAPER_OWN(own_cq, bnxt_cq, paper_cq)
PAPER_OWN(own_srq, bnxt_srq, paper_srq)
PAPER_OWN(own_qp, bnxt_qp, paper_qp)

static int bnxt_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	const struct paper_vendor *vendor = to_paper_dev(ctx->ib.device)->vendor;
	struct bnxt_re_uctx_resp resp = {
		.max_qp = vendor->limits.max_qp,
		.pg_size = PAGE_SIZE,
		.cqe_sz = CQE_SIZE,
		.max_cqd = MAX_CQE,
		.comp_mask = BNXT_RE_UCNTX_CMASK_HAVE_CCTX | BNXT_RE_UCNTX_CMASK_HAVE_MODE,
		.chip_id0 = vendor->pci_device << BNXT_RE_CHIP_ID0_CHIP_NUM_SFT,
		.mode = BNXT_QPLIB_WQE_MODE_STATIC,
	};
	struct page *page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	int err;

	if (!page)
		return -ENOMEM;
	err = paper_respond(udata, &resp, sizeof(resp));
	if (err) {
		__free_page(page);
		return -EFAULT;
	}
	own_ctx(ctx)->shared = page;
	return 0;
}

static void bnxt_dealloc_ucontext(struct ib_ucontext *ib)
{
	paper_dealloc_ucontext(ib);
	put_page(own_ctx(to_paper_ucontext(ib))->shared); /* a mapping that is left holds it, too */
}

/* Doorbells. */

static void cq_doorbell(struct paper_cq *cq, enum doorbell type, u32 index)
{
	struct bnxt_cq *own = own_cq(cq);
	u32 taken = (index - (u32)own->ci) & (cq->entries - 1);

	/* The index alone does not tell nothing from all; a plain doorbell follows upon polling. */
	if (!taken && type == DB_CQ)
		taken = cq->pi - (u32)own->ci;
	if (taken > cq->pi - (u32)own->ci)
		return;
	own->ci = (u32)own->ci + taken;
	if (type != DB_CQ)
		paper_arm(cq, type == DB_CQ_ARM_ALL ? PAPER_ARM_NEXT : PAPER_ARM_SOLICITED, own->ci);
}

static void bnxt_stored(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	u32 index = DB_INDEX(value), number = DB_NUMBER(value);
	struct paper_srq *srq;
	struct paper_qp *qp;
	struct paper_cq *cq;

	if (size != sizeof(value))
		return;
	switch (DB_TYPE(value)) {
	case DB_SQ:
		qp = xa_load(&dev->qps, number);
		if (qp && own_qp(qp)->ctx == ctx && index < own_qp(qp)->sq_entries)
			own_qp(qp)->sq_producer = index;
		break;
	case DB_RQ:
		qp = xa_load(&dev->qps, number);
		if (qp && own_qp(qp)->ctx == ctx && index < own_qp(qp)->rq_entries)
			own_qp(qp)->rq_producer = index;
		break;
	case DB_SRQ:
		srq = xa_load(&dev->srqs, number);
		if (srq && own_srq(srq)->ctx == ctx && index < own_srq(srq)->entries)
			own_srq(srq)->producer = index;
		break;
	case DB_SRQ_ARM:
		srq = xa_load(&dev->srqs, number);
		if (srq && own_srq(srq)->ctx == ctx)
			srq->attr.srq_limit = index;
		break;
	case DB_CQ:
	case DB_CQ_ARM_SOLICITED:
	case DB_CQ_ARM_ALL:
		cq = xa_load(&dev->cqs, number);
		if (cq && own_cq(cq)->ctx == ctx)
			cq_doorbell(cq, DB_TYPE(value), index);
		break;
	}
}

static int bnxt_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_pgoff)
		return paper_mmap_trapped(ctx, vma, bnxt_stored, 0);
	return vm_insert_page(vma, vma->vm_start, own_ctx(ctx)->shared);
}

static int bnxt_alloc_pd(struct paper_pd *pd, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	/* Where the doorbell page is: the library maps it when it has its first PD. */
	struct bnxt_re_pd_resp resp = { .pdid = pd->num, .dpi = 1, .dbr = PAGE_SIZE };

	return paper_respond(udata, &resp, sizeof(resp));
}

static int bnxt_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	struct paper_ucontext *ctx;
	int err;

	if (!(rdma_ah_get_ah_flags(attr->ah_attr) & IB_AH_GRH))
		return paper_refuse(-EINVAL, ib->device, "Failed to alloc AH: GRH not set");
	err = paper_create_ah(ib, attr, udata);
	if (err || !udata)
		return err;
	ctx = rdma_udata_to_drv_context(udata, struct paper_ucontext, ib);
	*(u32 *)(page_address(own_ctx(ctx)->shared) + BNXT_RE_AVID_OFFT) = to_paper_ah(ib)->num;
	return 0;
}

static struct ib_mr *bnxt_reg_user_mr(struct ib_pd *ib, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata)
{
	struct ib_mr *mr;

	if (length > MAX_MR_SIZE) {
		ibdev_err(ib->device, "MR Size: %lld > Max supported:%lld\n", length, MAX_MR_SIZE);
		return ERR_PTR(-ENOMEM);
	}
	mr = paper_reg_user_mr(ib, start, length, virt, access, udata);
	if (IS_ERR(mr)) {
		/* Whatever the reason that the memory could not be pinned. */
		ibdev_err(ib->device, "Failed to get umem");
		return ERR_PTR(-EFAULT);
	}
	return mr;
}

/* Completion queues. */

/* ring_size is how the driver and the library round the sizes of all queues: a queue that
 * is full must not look like an empty one. The driver cuts the largest ones, in what it
 * pins and tells, to a size that is no power of two; the library goes around the whole. */
static u32 ring_size(u32 wanted, u32 reserved)
{
	return roundup_pow_of_two(wanted + reserved + 1);
}

static int bnxt_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_cq_resp resp = { .cqid = cq->num, .phase = START_PHASE };
	struct bnxt_re_cq_req req;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > MAX_CQE)
		return paper_refuse(-EINVAL, cq->ib.device, "Failed to create CQ -max exceeded");
	if (paper_request(udata, &req, sizeof(req), offsetofend(struct bnxt_re_cq_req, cq_handle)))
		return -EFAULT;
	cq->entries = ring_size(attr->cqe, 0); /* of MAX_CQE, too, a power of two */
	cq->ib.cqe = cq->entries;
	err = paper_pin(cq->ib.device, &cq->buf, req.cq_va, (size_t)cq->entries * CQE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	own_cq(cq)->ctx = ctx;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* Shared receive queues. */

static int bnxt_create_any_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	/* The largest that query_device tells of is refused. */
	if (attr->attr.max_wr >= MAX_SRQ_WR)
		return paper_refuse(-EINVAL, ib->device, "Create CQ failed - max exceeded");
	return paper_create_srq(ib, attr, udata);
}

static int bnxt_create_srq(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_srq_resp resp = { .srqid = srq->num };
	struct bnxt_re_srq_req req;
	int err;

	if (paper_request(udata, &req, sizeof(req), offsetofend(struct bnxt_re_srq_req, srq_handle)))
		return -EFAULT;
	/* Written back as asked for; the limit reaches the device with modify_srq only. */
	own_srq(srq)->entries = ring_size(attr->attr.max_wr, 0);
	srq->attr.max_wr = min_t(u32, own_srq(srq)->entries, MAX_SRQ_WR + 1);
	err = paper_pin(srq->ib.device, &srq->buf, req.srqva, own_srq(srq)->entries * WQE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	own_srq(srq)->ctx = ctx;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int bnxt_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	const struct paper_srq *srq = to_paper_srq(ib);

	if (mask == IB_SRQ_MAX_WR)
		return -EINVAL;
	if (mask != IB_SRQ_LIMIT)
		return paper_refuse(-EINVAL, ib->device, "Unsupported srq_attr_mask 0x%x", mask);
	if (attr->srq_limit > srq->attr.max_wr)
		return -EINVAL;
	/* The driver rings a doorbell for it that has no type (bnxt_qplib_srq_arm_db, mended by
	 * Linux 6.12): the device is armed by the library's own, with the next receive. */
	return 0;
}

/* Queue pairs. */

/* bnxt_create_any_qp answers what the driver refuses before it looks at the rest. */
static int bnxt_create_any_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &attr->cap;

	/* The sizes of a receive queue that there won't be, because of an SRQ, count, too. */
	if (cap->max_send_wr > MAX_WR || cap->max_recv_wr > MAX_WR || cap->max_send_sge > MAX_SGE || cap->max_recv_sge > MAX_SGE ||
	    cap->max_inline_data > MAX_INLINE)
		return paper_refuse(-EINVAL, ib->device, "Create QP failed - max exceeded! 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x",
				      cap->max_send_wr, MAX_WR, cap->max_recv_wr, MAX_WR, cap->max_send_sge, MAX_SGE,   cap->max_recv_sge, MAX_SGE, cap->max_inline_data, MAX_INLINE);
	if (attr->qp_type != IB_QPT_RC && attr->qp_type != IB_QPT_UD)
		return paper_refuse(-EOPNOTSUPP, ib->device, "QP type 0x%x not supported", IB_QPT_MAX);
	if (attr->create_flags)
		return -EOPNOTSUPP;
	return paper_create_qp(ib, attr, udata);
}

static int bnxt_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_qp_resp resp = { .qpid = qp->num };
	size_t entry = WQE_SIZE + (qp->type == IB_QPT_RC ? PSN_SIZE : 0);
	struct bnxt_qp *own = own_qp(qp);
	struct bnxt_re_qp_req req;
	int err;

	if (paper_request(udata, &req, sizeof(req), offsetofend(struct bnxt_re_qp_req, qp_handle)))
		return -EFAULT;
	own->ctx = ctx;
	own->handle = req.qp_handle;
	own->sq_entries = ring_size(attr->cap.max_send_wr, RESERVED_WRS);
	qp->cap.max_send_wr = min_t(u32, own->sq_entries, MAX_WR + RESERVED_WRS + 1);
	if (attr->cap.max_inline_data) {
		attr->cap.max_inline_data = MAX_INLINE;
		qp->cap.max_inline_data = MAX_INLINE;
		qp->cap.max_send_sge = MAX_INLINE / SGE_SIZE;
	}
	err = paper_pin(qp->ib.device, &qp->sq, req.qpsva, PAGE_ALIGN(own->sq_entries * entry), IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	if (qp->srq) {
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	} else {
		own->rq_entries = ring_size(attr->cap.max_recv_wr, 0);
		qp->cap.max_recv_wr = min_t(u32, own->rq_entries, MAX_WR + 1);
		err = paper_pin(qp->ib.device, &qp->rq, req.qprva, PAGE_ALIGN(own->rq_entries * WQE_SIZE), IB_ACCESS_LOCAL_WRITE);
		if (err)
			return err;
	}
	return paper_respond(udata, &resp, sizeof(resp));
}

static int bnxt_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	const struct paper_dev *dev = to_paper_dev(qp->ib.device);
	struct ib_device *ib = qp->ib.device;
	enum ib_qp_state state = READ_ONCE(qp->attr.qp_state);

	if (mask & IB_QP_STATE && !ib_modify_qp_is_ok(state, attr->qp_state, qp->type, mask)) {
		ibdev_err(ib, "Invalid attribute mask: %#x specified ", mask);
		ibdev_err(ib, "for qpn: %#x type: %#x", qp->num, qp->type);
		ibdev_err(ib, "curr_qp_state=0x%x, new_qp_state=0x%x\n", state, attr->qp_state);
		return -EINVAL;
	}
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_RTR && mask & IB_QP_PATH_MTU &&
	    ib_mtu_enum_to_int(attr->path_mtu) > ib_mtu_enum_to_int(iboe_get_mtu(dev->port.netdev->mtu)))
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_RD_ATOM)
		return paper_refuse(-EINVAL, ib, "max_dest_rd_atomic requested%d is > dev_max%d", attr->max_dest_rd_atomic, MAX_RD_ATOM);
	return 0;
}

static int bnxt_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	int err = paper_query_qp(ib, attr, mask, init);

	/* Once set, they have all of these, asked for or not. */
	if (!err && attr->qp_state != IB_QPS_RESET)
		attr->qp_access_flags |= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	if (!err)
		attr->max_rd_atomic = min_t(u8, attr->max_rd_atomic, MAX_RD_ATOM);
	return err;
}

/* The data path. */

static void read_elements(struct paper_wr *wr, const struct bnxt_wqe *wqe, unsigned int n)
{
	unsigned int i;

	wr->nsge = n;
	for (i = 0; i < n; i++) {
		wr->sge[i] = (struct paper_sge){ le64_to_cpu(wqe->sge[i].addr), le32_to_cpu(wqe->sge[i].length), le32_to_cpu(wqe->sge[i].key) };
	}
}

static int read_send(struct paper_qp *qp, struct paper_wr *wr, const struct bnxt_wqe *wqe)
{
	static const u8 opcodes[] = { /* and one, for 0 is none */
		[OP_SEND] = IB_WR_SEND + 1,
		[OP_SEND_IMM] = IB_WR_SEND_WITH_IMM + 1,
		[OP_WRITE] = IB_WR_RDMA_WRITE + 1,
		[OP_WRITE_IMM] = IB_WR_RDMA_WRITE_WITH_IMM + 1,
		[OP_READ] = IB_WR_RDMA_READ + 1,
		[OP_COMPARE_SWAP] = IB_WR_ATOMIC_CMP_AND_SWP + 1,
		[OP_FETCH_ADD] = IB_WR_ATOMIC_FETCH_AND_ADD + 1,
	};
	struct paper_dev *dev = to_paper_dev(qp->ib.device);
	u32 head = le32_to_cpu(wqe->head), slots = head >> 16 & 0xff, flags = head >> 8 & 0xff;
	struct paper_ah *ah;

	wr->flags = (flags & WQE_SIGNALED ? IB_SEND_SIGNALED : 0) | (flags & WQE_SOLICITED ? IB_SEND_SOLICITED : 0);
	wr->imm = cpu_to_be32(le32_to_cpu(wqe->key_or_imm));
	if ((head & 0xff) >= ARRAY_SIZE(opcodes) || !opcodes[head & 0xff])
		return -EINVAL;
	wr->opcode = opcodes[head & 0xff] - 1;
	if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		bool swap = wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP;

		wr->remote_addr = le64_to_cpu(wqe->atomic_va);
		wr->rkey = le32_to_cpu(wqe->key_or_imm);
		wr->swap = le64_to_cpu(wqe->atomic.swap_or_add);
		wr->compare_add = swap ? le64_to_cpu(wqe->atomic.compare) : wr->swap;
	} else if (wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM) {
		if (qp->type == IB_QPT_UD) {
			ah = xa_load(&dev->ahs, le32_to_cpu(wqe->send.ah) & 0xfffff);
			if (!ah || ah->ib.pd != qp->ib.pd)
				return -EINVAL;
			wr->to.qpn = le32_to_cpu(wqe->send.qpn) & 0xffffff;
			wr->to.qkey = le32_to_cpu(wqe->qkey);
			wr->to.global = true;
			wr->to.gid = ah->attr.grh.dgid;
		}
	} else {
		wr->remote_addr = le64_to_cpu(wqe->rdma.va);
		wr->rkey = le32_to_cpu(wqe->rdma.key);
	}
	if (flags & WQE_INLINE) {
		u32 len = le32_to_cpu(wqe->length);

		if (len > MAX_INLINE || wr->opcode == IB_WR_RDMA_READ)
			return -EINVAL;
		wr->flags |= IB_SEND_INLINE;
		wr->inline_len = len;
		memcpy(wr->inline_data, wqe->data, len);
		return 1;
	}
	if (slots < WQE_HEADER / SGE_SIZE || slots > WQE_SIZE / SGE_SIZE)
		return -EINVAL;
	read_elements(wr, wqe, slots - WQE_HEADER / SGE_SIZE);
	return 1;
}

static void terminate(struct paper_qp *qp);

static int bnxt_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	struct bnxt_qp *own = own_qp(qp);
	struct bnxt_wqe wqe;

	/* The library flushes what it knows of itself. */
	if (paper_state(qp) == IB_QPS_ERR)
		terminate(qp);
	if (paper_state(qp) != IB_QPS_RTS || own->sq_taken == own->sq_producer)
		return 0;
	smp_rmb();
	memcpy(&wqe, qp->sq.va + own->sq_taken * WQE_SIZE, sizeof(wqe));
	barrier(); /* the process may change it meanwhile */
	memset(wr, 0, sizeof(*wr));
	own->sq_taken = (own->sq_taken + 1) % own->sq_entries;
	wr->index = own->sq_taken;
	return read_send(qp, wr, &wqe);
}

static int bnxt_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	struct bnxt_qp *own = own_qp(qp);
	unsigned long *taken = srq ? &own_srq(srq)->taken : &own->rq_taken;
	u32 slots;
	struct bnxt_wqe wqe;

	if (paper_state(qp) == IB_QPS_ERR || *taken == (srq ? own_srq(srq)->producer : own->rq_producer))
		return 0;
	smp_rmb();
	memcpy(&wqe, (srq ? srq->buf.va : qp->rq.va) + *taken * WQE_SIZE, sizeof(wqe));
	barrier(); /* the process may change it meanwhile */
	*taken = (*taken + 1) % (srq ? own_srq(srq)->entries : own->rq_entries);
	memset(wr, 0, sizeof(*wr));
	wr->id = le32_to_cpu(wqe.id);
	slots = le32_to_cpu(wqe.head) >> 16 & 0xff;
	if (slots < WQE_HEADER / SGE_SIZE || slots > WQE_SIZE / SGE_SIZE)
		return -EINVAL;
	read_elements(wr, &wqe, slots - WQE_HEADER / SGE_SIZE);
	return 1;
}

static u32 bnxt_srq_avail(struct paper_srq *srq)
{
	const struct bnxt_srq *own = own_srq(srq);

	return (own->producer + own->entries - own->taken) % own->entries;
}

static u8 recv_status(enum ib_wc_status status)
{
	static const u8 codes[] = {
		[IB_WC_LOC_ACCESS_ERR] = 0x1,
		[IB_WC_LOC_LEN_ERR] = 0x2,
		[IB_WC_LOC_PROT_ERR] = 0x3,
		[IB_WC_LOC_QP_OP_ERR] = 0x4,
		[IB_WC_REM_INV_REQ_ERR] = 0x6,
	};

	return PAPER_CODE(codes, status, 0x7); /* flushed */
}

/* write_cqe hands an entry to the process: its phase last. */
static void write_cqe(struct paper_cq *cq, struct bnxt_cqe *cqe, enum cqe_type type, u8 status, u16 flags)
{
	struct bnxt_cqe *at = cq->buf.va + (size_t)(cq->pi & (cq->entries - 1)) * CQE_SIZE;
	u32 phase = cq->pi & cq->entries ? !START_PHASE : START_PHASE;

	memcpy(at, cqe, offsetof(struct bnxt_cqe, head));
	at->id = cqe->id;
	smp_wmb();
	WRITE_ONCE(at->head, cpu_to_le32(phase | type << 1 | status << 8 | (u32)flags << 16));
}

/* One place is left free: for what completes the requests before a failed one. */
static bool is_full(struct paper_cq *cq)
{
	return cq->pi - (u32)own_cq(cq)->ci >= cq->entries - 1;
}

static void write_terminal(struct paper_qp *qp, struct paper_cq *cq)
{
	struct bnxt_qp *own = own_qp(qp);
	u32 sq = cq == qp->send_cq ? own->sq_told : 0xffff, rq = cq == qp->recv_cq ? own->rq_taken : 0xffff;
	struct bnxt_cqe cqe = { .send = { .handle = cpu_to_le64(own->handle), .index = cpu_to_le32(sq | rq << 16) } };

	own->terminated |= (cq == qp->send_cq ? BIT(0) : 0) | (cq == qp->recv_cq ? BIT(1) : 0);
	write_cqe(cq, &cqe, CQE_TERMINAL, 0, 0);
}

/* terminate writes what tells of the error state, if it has not been written. */
static void terminate(struct paper_qp *qp)
{
	struct paper_cq *cqs[] = { qp->send_cq, qp->recv_cq };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cqs); i++) {
		if (!cqs[i] || own_qp(qp)->terminated & BIT(i) || cqs[i]->dead || is_full(cqs[i]))
			continue;
		write_terminal(qp, cqs[i]);
		cqs[i]->solicited_pi = ++cqs[i]->pi;
	}
}

static int bnxt_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	struct bnxt_qp *own = own_qp(wc->qp);
	struct bnxt_cqe cqe = {};
	u16 flags = 0;

	if (is_full(cq))
		return -ENOSPC;
	if (!wc->recv && wc->status == IB_WC_WR_FLUSH_ERR) {
		/* The send that was under way. */
		write_terminal(wc->qp, cq);
		return 0;
	}
	if (!wc->recv) {
		cqe.send.handle = cpu_to_le64(own->handle);
		if (wc->status != IB_WC_SUCCESS && own->sq_told != (wc->wr->index + own->sq_entries - 1) % own->sq_entries) {
			cqe.send.index = cpu_to_le32((wc->wr->index + own->sq_entries - 1) % own->sq_entries);
			write_cqe(cq, &cqe, CQE_SEND, 0, 0);
			cq->pi++;
		}
		own->sq_told = wc->wr->index;
		cqe.send.index = cpu_to_le32(wc->wr->index);
		write_cqe(cq, &cqe, CQE_SEND, PAPER_CODE(paper_requester_errors, wc->status, 11 /* flushed */), 0);
		return 0;
	}
	cqe.recv.length = cpu_to_le32(wc->byte_len);
	cqe.recv.imm = cpu_to_le32(be32_to_cpu(wc->imm));
	cqe.recv.handle = cpu_to_le64(own->handle);
	if (wc->srq) {
		flags |= CQE_FROM_SRQ;
		cqe.id = cpu_to_le32(wc->wr->id);
	}
	if (wc->flags & IB_WC_WITH_IMM)
		flags |= CQE_IMM;
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		flags |= CQE_RDMA;
	if (wc->qp->type == IB_QPT_UD) {
		cqe.recv.source = cpu_to_le64((u64)wc->src_qp << 48);
		cqe.id |= cpu_to_le32(wc->src_qp >> 16 << 24);
	}
	write_cqe(cq, &cqe, wc->qp->type == IB_QPT_UD ? CQE_RECV_UD : CQE_RECV, recv_status(wc->status), flags);
	return 0;
}

static void bnxt_reset_qp(struct paper_qp *qp)
{
	struct bnxt_qp *own = own_qp(qp);

	own->sq_producer = own->rq_producer = 0;
	own->sq_taken = own->rq_taken = 0;
	own->sq_told = 0;
	own->terminated = 0;
}

/* Versions are told byte by byte: 219.0.144.0. */
static void bnxt_fw_str(struct ib_device *ib, char *str)
{
	u64 v = to_paper_dev(ib)->vendor->limits.fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u.%u", (u8)v, (u8)(v >> 8), (u8)(v >> 16), (u8)(v >> 24));
}

static const struct ib_device_ops bnxt_ops = {
	.create_ah = bnxt_create_ah,
	.create_qp = bnxt_create_any_qp,
	.create_srq = bnxt_create_any_srq,
	.create_user_ah = bnxt_create_ah,
	.dealloc_ucontext = bnxt_dealloc_ucontext,
	.get_dev_fw_str = bnxt_fw_str,
	.modify_srq = bnxt_modify_srq,
	.query_qp = bnxt_query_qp,
	.reg_user_mr = bnxt_reg_user_mr,
};

const struct paper_vendor paper_bnxt_re = {
	.name = "bnxt_re",
	.device = "bnxt_re%d",
	.driver_id = RDMA_DRIVER_BNXT_RE,
	.abi = BNXT_RE_ABI_VERSION,
	.pci_vendor = PCI_VENDOR_ID_BROADCOM,
	.pci_device = 0x1750,
	.bus_driver = "bnxt_en",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 8, /* BNXT_RE_MAX_MSIX is 9; one is the firmware's */
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_UD),
	.limits = {
		.fw_ver = 219 | 144 << 16,
		.hw_ver = 0x11,
		.max_mr_size = MAX_MR_SIZE,
		.page_size_cap = 0x7ffff000, /* BNXT_RE_PAGE_SIZE_SUPPORTED */
		.max_qp = 64 * 1024 + 1, /* BNXT_RE_MAX_QPC_COUNT, and QP1 */
		.max_qp_wr = MAX_WR,
		.device_cap_flags = IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SHUTDOWN_PORT |
				    IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RESIZE_MAX_WR | IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_N_NOTIFY_CQ | IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_MEM_MGT_EXTENSIONS,
		.max_send_sge = MAX_SGE,
		.max_recv_sge = MAX_SGE,
		.max_sge_rd = MAX_SGE,
		.max_cq = 64 * 1024, /* BNXT_RE_MAX_CQ_COUNT */
		.max_cqe = MAX_CQE,
		.max_mr = 256 * 1024, /* BNXT_RE_MAX_MRW_COUNT_256K */
		.max_mw = 256 * 1024,
		.max_pd = 64 * 1024,
		.max_qp_rd_atom = MAX_RD_ATOM,
		.max_qp_init_rd_atom = MAX_RD_ATOM,
		.atomic_cap = IB_ATOMIC_GLOB,
		.masked_atomic_cap = IB_ATOMIC_GLOB,
		.max_ah = 64 * 1024,
		.max_srq = 0xffff, /* 16 bits in the firmware's answer */
		.max_srq_wr = MAX_SRQ_WR,
		.max_srq_sge = MAX_SGE,
		.max_fast_reg_page_list_len = 512, /* MAX_PBL_LVL_1_PGS */
		.local_ca_ack_delay = 16, /* BNXT_RE_DEFAULT_ACK_DELAY */
	},
	.port = {
		.gid_tbl_len = 256, /* BNXT_QPLIB_NUM_GIDS_SUPPORTED */
		.max_msg_sz = 1 << 30, /* BNXT_RE_MAX_MR_SIZE_LOW */
		.port_cap_flags = IB_PORT_CM_SUP | IB_PORT_REINIT_SUP | IB_PORT_DEVICE_MGMT_SUP | IB_PORT_VENDOR_CLASS_SUP,
		.max_vl_num = 4,
	},
	.ops = &bnxt_ops,
	.alloc_ucontext = bnxt_alloc_ucontext,
	.mmap = bnxt_mmap,
	.alloc_pd = bnxt_alloc_pd,
	.create_cq = bnxt_create_cq,
	.create_srq = bnxt_create_srq,
	.create_qp = bnxt_create_qp,
	.modify_qp = bnxt_modify_qp,
	.next_send = bnxt_next_send,
	.next_recv = bnxt_next_recv,
	.srq_avail = bnxt_srq_avail,
	.complete = bnxt_complete,
	.reset_qp = bnxt_reset_qp,
};
