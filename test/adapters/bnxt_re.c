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

struct bnxt_ucontext {
	struct page *shared;
};

static struct bnxt_ucontext *own_ctx(struct paper_ucontext *ctx)
{
	BUILD_BUG_ON(sizeof(struct bnxt_ucontext) > sizeof(ctx->priv));
	return (struct bnxt_ucontext *)ctx->priv;
}

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

static int bnxt_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	if (vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_pgoff)
		return paper_mmap_ignored(ctx, vma);
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

	if (!(rdma_ah_get_ah_flags(attr->ah_attr) & IB_AH_GRH)) {
		ibdev_err(ib->device, "Failed to alloc AH: GRH not set");
		return -EINVAL;
	}
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

/* rounded is how the driver rounds the sizes of all queues: a queue that is full must
 * not look like an empty one. */
static u32 rounded(u32 wanted, u32 reserved, u32 max)
{
	return min_t(u32, roundup_pow_of_two(wanted + reserved + 1), max + reserved + 1);
}

static int bnxt_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_cq_resp resp = { .cqid = cq->num, .phase = START_PHASE };
	struct bnxt_re_cq_req req;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > MAX_CQE) {
		ibdev_err(cq->ib.device, "Failed to create CQ -max exceeded");
		return -EINVAL;
	}
	if (paper_request(udata, &req, sizeof(req), sizeof(req)))
		return -EFAULT;
	cq->entries = rounded(attr->cqe, 0, MAX_CQE);
	cq->ib.cqe = cq->entries;
	err = paper_pin(cq->ib.device, &cq->buf, req.cq_va, (size_t)cq->entries * CQE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* Shared receive queues. */

static int bnxt_create_any_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	/* The largest that query_device tells of is refused. */
	if (attr->attr.max_wr >= MAX_SRQ_WR) {
		ibdev_err(ib->device, "Create CQ failed - max exceeded");
		return -EINVAL;
	}
	return paper_create_srq(ib, attr, udata);
}

static int bnxt_create_srq(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_srq_resp resp = { .srqid = srq->num };
	struct bnxt_re_srq_req req;
	int err;

	if (paper_request(udata, &req, sizeof(req), sizeof(req)))
		return -EFAULT;
	/* Written back as asked for; the limit reaches the device with modify_srq only. */
	srq->attr.max_wr = rounded(attr->attr.max_wr, 0, MAX_SRQ_WR);
	err = paper_pin(srq->ib.device, &srq->buf, req.srqva, (size_t)srq->attr.max_wr * WQE_SIZE, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int bnxt_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_srq *srq = to_paper_srq(ib);

	if (mask == IB_SRQ_MAX_WR)
		return -EINVAL;
	if (mask != IB_SRQ_LIMIT) {
		ibdev_err(ib->device, "Unsupported srq_attr_mask 0x%x", mask);
		return -EINVAL;
	}
	if (attr->srq_limit > srq->attr.max_wr)
		return -EINVAL;
	mutex_lock(&dev->lock);
	srq->attr.srq_limit = attr->srq_limit;
	mutex_unlock(&dev->lock);
	paper_wake(dev);
	return 0;
}

/* Queue pairs. */

/* bnxt_create_any_qp answers what the driver refuses before it looks at the rest. */
static int bnxt_create_any_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	const struct ib_qp_cap *cap = &attr->cap;

	/* The sizes of a receive queue that there won't be, because of an SRQ, count, too. */
	if (cap->max_send_wr > MAX_WR || cap->max_recv_wr > MAX_WR || cap->max_send_sge > MAX_SGE || cap->max_recv_sge > MAX_SGE ||
	    cap->max_inline_data > MAX_INLINE) {
		ibdev_err(ib->device, "Create QP failed - max exceeded! 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x 0x%x/0x%x",
			  cap->max_send_wr, MAX_WR, cap->max_recv_wr, MAX_WR, cap->max_send_sge, MAX_SGE,
			  cap->max_recv_sge, MAX_SGE, cap->max_inline_data, MAX_INLINE);
		return -EINVAL;
	}
	if (attr->qp_type != IB_QPT_RC && attr->qp_type != IB_QPT_UD) {
		ibdev_err(ib->device, "QP type 0x%x not supported", IB_QPT_MAX);
		return -EOPNOTSUPP;
	}
	if (attr->create_flags)
		return -EOPNOTSUPP;
	return paper_create_qp(ib, attr, udata);
}

static int bnxt_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct bnxt_re_qp_resp resp = { .qpid = qp->num };
	size_t entry = WQE_SIZE + (qp->type == IB_QPT_RC ? PSN_SIZE : 0);
	struct bnxt_re_qp_req req;
	int err;

	if (paper_request(udata, &req, sizeof(req), sizeof(req)))
		return -EFAULT;
	qp->cap.max_send_wr = rounded(attr->cap.max_send_wr, RESERVED_WRS, MAX_WR);
	if (attr->cap.max_inline_data) {
		attr->cap.max_inline_data = MAX_INLINE;
		qp->cap.max_inline_data = MAX_INLINE;
		qp->cap.max_send_sge = MAX_INLINE / SGE_SIZE;
	}
	err = paper_pin(qp->ib.device, &qp->sq, req.qpsva, PAGE_ALIGN(qp->cap.max_send_wr * entry), IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	if (qp->srq) {
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	} else {
		qp->cap.max_recv_wr = rounded(attr->cap.max_recv_wr, 0, MAX_WR);
		err = paper_pin(qp->ib.device, &qp->rq, req.qprva, PAGE_ALIGN((size_t)qp->cap.max_recv_wr * WQE_SIZE), IB_ACCESS_LOCAL_WRITE);
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
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > MAX_RD_ATOM) {
		ibdev_err(ib, "max_dest_rd_atomic requested%d is > dev_max%d", attr->max_dest_rd_atomic, MAX_RD_ATOM);
		return -EINVAL;
	}
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
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 8, /* BNXT_RE_MAX_MSIX is 9; one is the firmware's */
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_UD),
	.max_inline = MAX_INLINE,
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
		.max_pkeys = 1,
		.local_ca_ack_delay = 16, /* BNXT_RE_DEFAULT_ACK_DELAY */
	},
	.port = {
		.gid_tbl_len = 256, /* BNXT_QPLIB_NUM_GIDS_SUPPORTED */
		.max_msg_sz = 1 << 30, /* BNXT_RE_MAX_MR_SIZE_LOW */
		.max_mtu = IB_MTU_4096,
		.port_cap_flags = IB_PORT_CM_SUP | IB_PORT_REINIT_SUP | IB_PORT_DEVICE_MGMT_SUP | IB_PORT_VENDOR_CLASS_SUP,
		.max_vl_num = 4,
		.active_width = IB_WIDTH_4X,
		.active_speed = IB_SPEED_EDR,
	},
	.ops = &bnxt_ops,
	.alloc_ucontext = bnxt_alloc_ucontext,
	.mmap = bnxt_mmap,
	.alloc_pd = bnxt_alloc_pd,
	.create_cq = bnxt_create_cq,
	.create_srq = bnxt_create_srq,
	.create_qp = bnxt_create_qp,
	.modify_qp = bnxt_modify_qp,
};
