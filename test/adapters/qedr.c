// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * A QLogic FastLinQ QL41000 as qedr of Linux 6.1 drives it, for RoCE, without direct
 * packet mode (as where its doorbells are too few, or on a virtual function).
 *
 * Runs for real: all of libqedr, from alloc_context to free_context, but XRC.
 *
 * Modelled, from drivers/infiniband/hw/qedr of Linux 6.1:
 *   qedr_query_device, qedr_query_port            verbs.c  attributes; max_srq_sge stays 0, for qedr_set_device_attr (main.c) leaves it out
 *   qedr_alloc_ucontext, qedr_mmap                verbs.c  doorbells, and the pages that a library leaves a copy of each doorbell in
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
 * Not modelled: XRC (and its capability flag is not set), iWARP, direct packet mode, the
 * kernel's own queues.
 */
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
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

/* What a process can map: doorbells, or the page with the copy of one. */
struct mapping {
	struct rdma_user_mmap_entry entry;
	struct page *page; /* NULL: doorbells */
};

struct qedr_ucontext {
	struct mapping *doorbells;
	unsigned long copies; /* the library leaves copies */
};

struct qedr_cq {
	struct mapping *copy;
};

struct qedr_srq {
	u32 limit; /* as the driver remembers it: not reset by the event */
};

struct qedr_qp {
	struct mapping *sq_copy, *rq_copy;
};

static struct qedr_ucontext *own_ctx(struct paper_ucontext *ctx)
{
	BUILD_BUG_ON(sizeof(struct qedr_ucontext) > sizeof(ctx->priv));
	return (struct qedr_ucontext *)ctx->priv;
}

static struct qedr_cq *own_cq(struct paper_cq *cq)
{
	BUILD_BUG_ON(sizeof(struct qedr_cq) > sizeof(cq->priv));
	return (struct qedr_cq *)cq->priv;
}

static struct qedr_srq *own_srq(struct paper_srq *srq)
{
	BUILD_BUG_ON(sizeof(struct qedr_srq) > sizeof(srq->priv));
	return (struct qedr_srq *)srq->priv;
}

static struct qedr_qp *own_qp(struct paper_qp *qp)
{
	BUILD_BUG_ON(sizeof(struct qedr_qp) > sizeof(qp->priv));
	return (struct qedr_qp *)qp->priv;
}

/* Mappings. */

static struct mapping *add_mapping(struct paper_ucontext *ctx, bool page)
{
	struct mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL);

	if (!mapping)
		return NULL;
	if (page) {
		mapping->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!mapping->page)
			goto free;
	}
	if (!rdma_user_mmap_entry_insert(&ctx->ib, &mapping->entry, PAGE_SIZE))
		return mapping;
	if (mapping->page)
		__free_page(mapping->page);
free:
	kfree(mapping);
	return NULL;
}

/* remove_mapping has the mapping freed: at once, or when nobody looks at it any more. */
static void remove_mapping(struct mapping **mapping)
{
	if (*mapping)
		rdma_user_mmap_entry_remove(&(*mapping)->entry);
	*mapping = NULL;
}

static void qedr_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct mapping *mapping = container_of(entry, struct mapping, entry);

	if (mapping->page)
		put_page(mapping->page); /* who has mapped it holds it, too */
	kfree(mapping);
}

static u64 offset_of(struct mapping *mapping)
{
	return mapping ? rdma_user_mmap_get_offset(&mapping->entry) : 0;
}

static int qedr_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(&ctx->ib, vma);
	struct mapping *mapping;
	int err;

	if (!entry)
		return -EINVAL;
	mapping = container_of(entry, struct mapping, entry);
	if (mapping->page)
		err = vm_insert_page(vma, vma->vm_start, mapping->page);
	else
		err = paper_mmap_ignored(ctx, vma);
	rdma_user_mmap_entry_put(entry);
	return err;
}

static int qedr_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct qedr_alloc_ucontext_resp resp = {
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
	int err;

	if (paper_request(udata, &req, sizeof(req), 0))
		return -EFAULT;
	own_ctx(ctx)->copies = req.context_flags & QEDR_ALLOC_UCTX_DB_REC;
	own_ctx(ctx)->doorbells = add_mapping(ctx, false);
	if (!own_ctx(ctx)->doorbells)
		return -ENOMEM;
	if (req.context_flags & QEDR_SUPPORT_DPM_SIZES) {
		resp.dpm_flags = QEDR_DPM_SIZES_SET;
		resp.ldpm_limit_size = QEDR_LDPM_MAX_SIZE;
		resp.edpm_trans_size = QEDR_EDPM_TRANS_SIZE;
		resp.edpm_limit_size = MAX_INLINE;
	}
	resp.db_pa = offset_of(own_ctx(ctx)->doorbells);
	err = paper_respond(udata, &resp, sizeof(resp));
	if (err)
		remove_mapping(&own_ctx(ctx)->doorbells);
	return err;
}

static void qedr_dealloc_ucontext(struct ib_ucontext *ib)
{
	remove_mapping(&own_ctx(to_paper_ucontext(ib))->doorbells);
	paper_dealloc_ucontext(ib);
}

static int qedr_alloc_pd(struct paper_pd *pd, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct qedr_alloc_pd_uresp resp = { .pd_id = pd->num };

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
	struct qedr_create_cq_uresp resp = { .db_offset = CQ_DOORBELL, .icid = cq->num };
	struct qedr_create_cq_ureq req;
	size_t size;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe > MAX_CQES) {
		log_error(cq->ib.device, "create cq: the number of entries %d is too high. Must be equal or below %d.\n", attr->cqe, MAX_CQES);
		return -EINVAL;
	}
	if (paper_request(udata, &req, sizeof(req), 0))
		return -EINVAL;
	if (!req.len) {
		log_error(cq->ib.device, "create cq: cannot create a cq with 0 entries\n");
		return -EINVAL;
	}
	/* One more than is asked for, and what is left of the last page. */
	size = PAGE_ALIGN(((size_t)attr->cqe + 1) * CQE_SIZE);
	cq->entries = min_t(size_t, size / CQE_SIZE, MAX_CQES);
	cq->ib.cqe = cq->entries;
	if (req.len < (size_t)cq->entries * CQE_SIZE)
		return -EINVAL;
	if (paper_pin(cq->ib.device, &cq->buf, req.addr, (size_t)cq->entries * CQE_SIZE, IB_ACCESS_LOCAL_WRITE)) {
		log_error(cq->ib.device, "create user queue: failed ib_umem_get\n");
		return -EINVAL;
	}
	if (own_ctx(ctx)->copies) {
		own_cq(cq)->copy = add_mapping(ctx, true);
		if (!own_cq(cq)->copy)
			return -EINVAL;
	}
	resp.db_rec_addr = offset_of(own_cq(cq)->copy);
	return paper_respond(udata, &resp, sizeof(resp)) ? -EINVAL : 0;
}

static void qedr_destroy_cq(struct paper_cq *cq)
{
	remove_mapping(&own_cq(cq)->copy);
}

/* Shared receive queues. */

static int qedr_create_any_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	u32 sge = attr->attr.max_sge;
	int err;

	if (attr->attr.max_wr > MAX_SRQ_WR) {
		log_error(ib->device, "create srq: unsupported srq_wr=0x%x requested (max_srq_wr=0x%x)\n", attr->attr.max_wr, MAX_SRQ_WR);
		return -EINVAL;
	}
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
	    paper_pin(srq->ib.device, &srq->db, req.prod_pair_addr, 2 * sizeof(u32), 0)) {
		log_error(srq->ib.device, "create user queue: failed ib_umem_get\n");
		return -EFAULT;
	}
	return paper_respond(udata, &resp, sizeof(resp)) ? -EFAULT : 0;
}

static int qedr_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_srq *srq = to_paper_srq(ib);

	if (mask & IB_SRQ_MAX_WR) {
		log_error(ib->device, "modify srq: invalid attribute mask=0x%x specified for %p\n", mask, srq);
		return -EINVAL;
	}
	if (mask & IB_SRQ_LIMIT && attr->srq_limit >= srq->attr.max_wr) {
		log_error(ib->device, "modify srq: invalid srq_limit=0x%x (max_srq_limit=0x%x)\n", attr->srq_limit, srq->attr.max_wr);
		return -EINVAL;
	}
	mutex_lock(&dev->lock);
	if (mask & IB_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	own_srq(srq)->limit = attr->srq_limit;
	mutex_unlock(&dev->lock);
	paper_wake(dev);
	return 0;
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
	if (cap->max_send_wr > MAX_WR) {
		log_error(ib->device, "create qp: cannot create a SQ with %d elements (max_send_wr=0x%x)\n", cap->max_send_wr, MAX_WR);
		return -EINVAL;
	}
	if (cap->max_inline_data > MAX_INLINE) {
		log_error(ib->device, "create qp: unsupported inline data size=0x%x requested (max_inline=0x%x)\n", cap->max_inline_data, MAX_INLINE);
		return -EINVAL;
	}
	if (cap->max_send_sge > MAX_SGE) {
		log_error(ib->device, "create qp: unsupported send_sge=0x%x requested (max_send_sge=0x%x)\n", cap->max_send_sge, MAX_SGE);
		return -EINVAL;
	}
	if (cap->max_recv_sge > MAX_SGE) {
		log_error(ib->device, "create qp: unsupported recv_sge=0x%x requested (max_recv_sge=0x%x)\n", cap->max_recv_sge, MAX_SGE);
		return -EINVAL;
	}
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
	};
	struct qedr_create_qp_ureq req;
	int err;

	if (paper_request(udata, &req, sizeof(req), 0))
		return -EFAULT;
	err = pin_ring(qp, &qp->sq, req.sq_addr, req.sq_len, attr->cap.max_send_wr, SQ_ELEMENTS);
	if (err)
		return err;
	if (own_ctx(ctx)->copies) {
		own_qp(qp)->sq_copy = add_mapping(ctx, true);
		if (!own_qp(qp)->sq_copy)
			return -ENOMEM;
	}
	resp.sq_db_rec_addr = offset_of(own_qp(qp)->sq_copy);
	if (qp->srq) {
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	} else {
		err = pin_ring(qp, &qp->rq, req.rq_addr, req.rq_len, attr->cap.max_recv_wr, RQ_ELEMENTS);
		if (err)
			return err;
		if (own_ctx(ctx)->copies) {
			own_qp(qp)->rq_copy = add_mapping(ctx, true);
			if (!own_qp(qp)->rq_copy)
				return -ENOMEM;
		}
		resp.rq_db_offset = RQ_DOORBELL;
		resp.rq_icid = 2 * qp->num;
		resp.rq_db_rec_addr = offset_of(own_qp(qp)->rq_copy);
	}
	qp->cap.max_inline_data = MAX_INLINE; /* whatever was asked for */
	return paper_respond(udata, &resp, sizeof(resp));
}

static void qedr_destroy_qp(struct paper_qp *qp)
{
	remove_mapping(&own_qp(qp)->sq_copy);
	remove_mapping(&own_qp(qp)->rq_copy);
}

static int qedr_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	enum ib_qp_state from = READ_ONCE(qp->attr.qp_state);
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct ib_device *ib = qp->ib.device;

	if (!ib_modify_qp_is_ok(from, to, qp->type, mask)) {
		log_error(ib, "modify qp: invalid attribute mask=0x%x specified for\nqpn=0x%x of type=0x%x old_qp_state=0x%x, new_qp_state=0x%x\n",
			  mask, qp->num, qp->type, from, to);
		return -EINVAL;
	}
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096)) {
		pr_err("error: Only MTU sizes of 256, 512, 1024, 2048 and 4096 are supported by RoCE\n");
		return -EINVAL;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > MAX_RD_ATOMIC) {
		log_error(ib, "unsupported max_rd_atomic=%d, supported=%d\n", attr->max_rd_atomic, MAX_RD_ATOMIC);
		return -EINVAL;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_DEST_RD_ATOMIC) {
		log_error(ib, "unsupported max_dest_rd_atomic=%d, supported=%d\n", attr->max_dest_rd_atomic, MAX_DEST_RD_ATOMIC);
		return -EINVAL;
	}
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

/* 8.37.7.0 */
static void qedr_fw_str(struct ib_device *ib, char *str)
{
	u32 v = to_paper_dev(ib)->vendor->limits.fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff, v & 0xff);
}

static const struct ib_device_ops qedr_ops = {
	.create_qp = qedr_create_any_qp,
	.create_srq = qedr_create_any_srq,
	.dealloc_ucontext = qedr_dealloc_ucontext,
	.get_dev_fw_str = qedr_fw_str,
	.mmap_free = qedr_mmap_free,
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
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 8, /* one for each processor of a host */
	.qp_types = BIT(IB_QPT_RC),
	.max_inline = MAX_INLINE,
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
		.max_pkeys = 1,
		.local_ca_ack_delay = 15, /* QED_RDMA_ACK_DELAY */
	},
	.port = {
		.gid_tbl_len = 128, /* QEDR_MAX_SGID */
		.max_msg_sz = 0x80000000, /* RDMA_MAX_DATA_SIZE_IN_WQE */
		.max_mtu = IB_MTU_4096,
		.max_vl_num = 4,
		.active_width = IB_WIDTH_1X,
		.active_speed = IB_SPEED_EDR,
	},
	.ops = &qedr_ops,
	.alloc_ucontext = qedr_alloc_ucontext,
	.mmap = qedr_mmap,
	.alloc_pd = qedr_alloc_pd,
	.create_cq = qedr_create_cq,
	.create_srq = qedr_create_srq,
	.create_qp = qedr_create_qp,
	.modify_qp = qedr_modify_qp,
	.destroy_cq = qedr_destroy_cq,
	.destroy_qp = qedr_destroy_qp,
};
