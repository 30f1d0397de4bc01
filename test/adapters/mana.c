// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Microsoft's Azure Network Adapter, for libmana. Its control path only.
 *
 * The library's own, and so executed: which queues it has room for, and in which size;
 * that version 44 makes no CQ without an application's allocators (manadv), posts and
 * polls nothing and has raw packets only; that later ones have RC, refuse to arm for
 * solicited events, and to post a send in a wrong state.
 *
 * Modelled after the driver of Linux 6.12, drivers/infiniband/hw/mana (6.1 has none):
 *   a CQ whose size nobody writes back: 0     mana_ib_create_cq (cq.c)
 *   types and their errnos, numbers of queues mana_ib_create_qp and what it calls (qp.c)
 *   neither query_qp nor SRQs nor handles of  mana_ib_dev_ops (device.c)
 *   addresses; so rdma(8) cannot show a queue pair
 *   access flags of regions                   mana_ib_reg_user_mr (mr.c): others EINVAL
 *   the device and its port                   mana_ib_query_device, mana_ib_query_port
 *                                             (main.c)
 *   the kernel log                            ibdev_err of mana_ib_create_rc_qp and
 *                                             mana_ib_gd_create_rc_qp; "HWC: Failed
 *                                             hw_channel req" of mana_hwc_send_request
 *                                             (net/ethernet/microsoft/mana), with EPROTO
 *
 * Not known, and assumed: the limits, which the adapter tells (below: queues of 1 MiB,
 * and as many elements as the longest request has room for), and that it refuses queue
 * pairs beyond them. Not modelled: the data path, RSS and work queues, the adapter's
 * own judgement of state changes (those of the core instead, with EINVAL).
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>

#include "paper.h"

/* Of rdma/mana-abi.h, which the headers of Linux 6.1 lack. */
#define MANA_ABI 1
#define MANA_DRIVER_ID ((enum rdma_driver_id)(RDMA_DRIVER_ERDMA + 1))

#define MANA_RNIC_CQ BIT(0)
#define MANA_NO_QUEUE U32_MAX

struct mana_create_cq {
	__aligned_u64 buf;
	__u16 flags, reserved0;
	__u32 reserved1;
};

struct mana_create_cq_resp {
	__u32 cqid, reserved;
};

struct mana_create_raw_qp {
	__aligned_u64 buf;
	__u32 size, port;
};

struct mana_create_raw_qp_resp {
	__u32 sqid, cqid, tx_vp_offset, reserved;
};

enum { MANA_SEND, MANA_SEND_RESPONDER, MANA_RECV_REQUESTER, MANA_RECV, MANA_QUEUES };

struct mana_create_rc_qp {
	__aligned_u64 buf[MANA_QUEUES];
	__u32 size[MANA_QUEUES];
};

struct mana_create_rc_qp_resp {
	__u32 id[MANA_QUEUES];
};

#define MANA_CQE 64
#define MANA_MAX_WR 2048 /* 1 MiB by 512, the longest request */
#define MANA_SEND_SGE 30
#define MANA_RECV_SGE 15
#define MANA_MAX_QP 4096

/* A CQ is that of the RDMA engine, or of one queue of raw packets. */
static unsigned long *is_taken(struct paper_cq *cq)
{
	return &cq->priv[0];
}

/* Whether a queue pair is what has taken its send CQ. */
static unsigned long *has_taken(struct paper_qp *qp)
{
	return &qp->priv[0];
}

static int mana_query_device(struct paper_dev *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	addrconf_addr_eui48((u8 *)&dev->ib.node_guid, dev->port.netdev->dev_addr);
	attr->sys_image_guid = 0;
	attr->vendor_id = 0;
	attr->vendor_part_id = 0;
	return 0;
}

static int mana_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct paper_dev *dev = to_paper_dev(ib);
	struct net_device *netdev = dev->port.netdev;
	bool up = dev->port.active && netif_carrier_ok(netdev) && netif_running(netdev);

	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(min_t(int, netdev->mtu, 4096));
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->active_speed = IB_SPEED_EDR;
	attr->active_width = IB_WIDTH_4X;
	attr->pkey_tbl_len = 1;
	attr->gid_tbl_len = 16;
	return 0;
}

static void mana_leave_out(struct ib_device_ops *ops)
{
	ops->create_ah = NULL;
	ops->create_user_ah = NULL;
	ops->destroy_ah = NULL;
	ops->get_dev_fw_str = NULL;
	ops->query_qp = NULL;
}

static int mana_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	return 0;
}

static int mana_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	return paper_mmap_ignored(ctx, vma);
}

static int mana_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct mana_create_cq_resp resp = { .cqid = MANA_NO_QUEUE };
	struct mana_create_cq cmd;
	int err;

	err = paper_request(udata, &cmd, sizeof(cmd), offsetof(struct mana_create_cq, flags));
	if (err)
		return err;
	if (attr->cqe > (cmd.flags & MANA_RNIC_CQ ? U32_MAX / MANA_CQE : MANA_MAX_WR))
		return -EINVAL;
	err = paper_pin(cq->ib.device, &cq->buf, cmd.buf, (size_t)attr->cqe * MANA_CQE, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	cq->entries = attr->cqe;
	/* ib.cqe stays 0. */
	if (cmd.flags & MANA_RNIC_CQ) {
		resp.cqid = cq->num;
		*is_taken(cq) = true;
	}
	return paper_respond(udata, &resp, sizeof(resp));
}

static int create_raw(struct paper_qp *qp, const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	struct mana_create_raw_qp_resp resp = { .sqid = qp->num };
	struct mana_create_raw_qp cmd;
	int err;

	err = paper_request(udata, &cmd, sizeof(cmd), sizeof(cmd));
	if (err)
		return err;
	if (cap->max_send_wr > MANA_MAX_WR || cap->max_send_sge > MANA_SEND_SGE || cmd.port != 1)
		return -EINVAL;
	err = paper_pin(qp->ib.device, &qp->sq, cmd.buf, cmd.size, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	if (!qp->send_cq || test_and_set_bit(0, is_taken(qp->send_cq)))
		return -EINVAL;
	*has_taken(qp) = true;
	resp.cqid = qp->send_cq->num;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int create_rc(struct paper_qp *qp, const struct ib_qp_cap *cap, struct ib_udata *udata)
{
	struct paper_mem *const queues[MANA_QUEUES] = { &qp->sq, &qp->buf, &qp->db, &qp->rq };
	struct ib_device *ib = qp->ib.device;
	struct mana_create_rc_qp_resp resp;
	struct mana_create_rc_qp cmd;
	int i, err;

	err = paper_request(udata, &cmd, sizeof(cmd), sizeof(cmd));
	if (err)
		return err;
	for (i = 0; i < MANA_QUEUES; i++) {
		err = paper_pin(ib, queues[i], cmd.buf[i], cmd.size[i], IB_ACCESS_LOCAL_WRITE);
		if (err) {
			/* as the kernel counts them, which has one more (FMR) */
			ibdev_err(ib, "Failed to create queue %d, err %d\n", i < MANA_RECV_REQUESTER ? i : i + 1, err);
			return err;
		}
		/* The lowest bits say which queue of a pair it is; those of the first and
		 * the last are that of the pair. */
		resp.id[i] = qp->num << 2 | (i == MANA_SEND_RESPONDER || i == MANA_RECV_REQUESTER);
	}
	if (cap->max_send_wr > MANA_MAX_WR || cap->max_recv_wr > MANA_MAX_WR || cap->max_send_sge > MANA_SEND_SGE ||
	    cap->max_recv_sge > MANA_RECV_SGE) {
		dev_err(ib->dev.parent, "HWC: Failed hw_channel req: 0x%x\n", 1);
		ibdev_err(ib, "Failed to create rc qp err %d", -EPROTO);
		ibdev_err(ib, "Failed to create rc qp  %d\n", -EPROTO);
		return -EPROTO;
	}
	qp->ib.qp_num = resp.id[MANA_RECV];
	return paper_respond(udata, &resp, sizeof(resp));
}

static int mana_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	qp->cap = attr->cap;
	if (attr->rwq_ind_tbl)
		return -EOPNOTSUPP; /* there are no work queues that it could name */
	return qp->type == IB_QPT_RC ? create_rc(qp, &attr->cap, udata) : create_raw(qp, &attr->cap, udata);
}

static int mana_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	return qp->type == IB_QPT_RC ? 0 : -EOPNOTSUPP;
}

static void mana_destroy_qp(struct paper_qp *qp)
{
	if (*has_taken(qp))
		clear_bit(0, is_taken(qp->send_cq));
}

static const struct ib_device_ops mana_ops = {
	.query_port = mana_query_port,
};

const struct paper_vendor paper_mana = {
	.name = "mana",
	.device = "mana_%d",
	.driver_id = MANA_DRIVER_ID,
	.abi = MANA_ABI,
	.pci_vendor = 0x1414,
	.pci_device = 0x00ba,
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 4,
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_RAW_PACKET),
	.no_qp_type = -EINVAL,
	.own_sizes = true,
	.mr_access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	.no_mr_access = -EINVAL,
	.limits = {
		.max_mr_size = U64_MAX,
		.page_size_cap = 0x3ff000, /* 4 KiB to 2 MiB */
		.max_qp = MANA_MAX_QP,
		.max_qp_wr = MANA_MAX_WR,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN,
		.max_send_sge = MANA_SEND_SGE,
		.max_recv_sge = MANA_RECV_SGE,
		.max_sge_rd = MANA_RECV_SGE,
		.max_cq = MANA_MAX_QP,
		.max_cqe = MANA_MAX_WR,
		.max_mr = 0xffffff,
		.max_pd = MANA_MAX_QP,
		.max_qp_rd_atom = 16,
		.max_res_rd_atom = 16 * MANA_MAX_QP,
		.max_qp_init_rd_atom = 16,
		.max_ah = INT_MAX,
		.max_pkeys = 1,
		.local_ca_ack_delay = 16,
	},
	.ops = &mana_ops,
	.leave_out = mana_leave_out,
	.query_device = mana_query_device,
	.alloc_ucontext = mana_alloc_ucontext,
	.mmap = mana_mmap,
	.create_cq = mana_create_cq,
	.create_qp = mana_create_qp,
	.modify_qp = mana_modify_qp,
	.destroy_qp = mana_destroy_qp,
};
