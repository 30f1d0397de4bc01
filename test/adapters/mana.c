// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Microsoft's Azure Network Adapter, for libmana.
 *
 * The library's own, and so executed: which queues it has room for, and in which size;
 * that version 44 makes no CQ without an application's allocators (manadv), posts and
 * polls nothing and has raw packets only; that later ones have RC, refuse to arm for
 * solicited events, and to post a send in a wrong state; that they flush what is left
 * after an error themselves; and all of their data path.
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
 * and as many elements as the longest request has room for), that it refuses queue
 * pairs beyond them, and that a queue that is not empty when its pair enters the error
 * state gives one completion (NOT_EMPTY_ON_DISABLE), upon which the library flushes
 * the rest. Not modelled: sending of raw packets, RSS and work queues, the adapter's own
 * judgement of state changes (those of the core instead, with EINVAL), full CQs.
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

struct mana_cq {
	unsigned long taken; /* by the RDMA engine, or by one queue of raw packets */
	struct paper_ucontext *ctx; /* of the RDMA engine's */
};

/* A queue of requests. Indices count units of 32 bytes, modulo 2^27. */
#define MANA_UNIT 32
#define MANA_INDEX ((1U << 27) - 1)

struct mana_queue {
	u32 size; /* in bytes; a power of two */
	u32 posted, at;
};

struct mana_qp {
	struct paper_ucontext *ctx;
	struct mana_queue send, recv, reads;
	u32 acked, armed; /* sequence numbers: what was completed, and from which on it is told */
	bool any_acked, is_armed, failed_send, failed_recv;
	bool has_taken; /* its send CQ */
};

PAPER_OWN(mana_cq, mana_cq, paper_cq)
PAPER_OWN(mana_qp, mana_qp, paper_qp)

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
		mana_cq(cq)->taken = true;
		mana_cq(cq)->ctx = ctx;
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
	if (!qp->send_cq || test_and_set_bit(0, &mana_cq(qp->send_cq)->taken))
		return -EINVAL;
	mana_qp(qp)->has_taken = true;
	resp.cqid = qp->send_cq->num;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int create_rc(struct paper_qp *qp, const struct ib_qp_cap *cap, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct paper_mem *const queues[MANA_QUEUES] = { &qp->sq, &qp->buf, &qp->db, &qp->rq };
	struct mana_qp *own = mana_qp(qp);
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
		resp.id[i] = qp->num | (i == MANA_SEND_RESPONDER || i == MANA_RECV_REQUESTER);
	}
	if (cap->max_send_wr > MANA_MAX_WR || cap->max_recv_wr > MANA_MAX_WR || cap->max_send_sge > MANA_SEND_SGE ||
	    cap->max_recv_sge > MANA_RECV_SGE) {
		dev_err(ib->dev.parent, "HWC: Failed hw_channel req: 0x%x\n", 1);
		ibdev_err(ib, "Failed to create rc qp err %d", -EPROTO);
		ibdev_err(ib, "Failed to create rc qp  %d\n", -EPROTO);
		return -EPROTO;
	}
	/* Behind the first there is memory that an agent of the host looks at. */
	own->send.size = rounddown_pow_of_two(cmd.size[MANA_SEND]);
	own->reads.size = rounddown_pow_of_two(cmd.size[MANA_RECV_REQUESTER]);
	own->recv.size = rounddown_pow_of_two(cmd.size[MANA_RECV]);
	if (min3(own->send.size, own->reads.size, own->recv.size) < PAGE_SIZE)
		return -EPROTO;
	own->ctx = ctx;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int mana_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	qp->cap = attr->cap;
	if (attr->rwq_ind_tbl)
		return -EOPNOTSUPP; /* there are no work queues that it could name */
	return qp->type == IB_QPT_RC ? create_rc(qp, &attr->cap, ctx, udata) : create_raw(qp, &attr->cap, udata);
}

static int mana_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	return qp->type == IB_QPT_RC ? 0 : -EOPNOTSUPP;
}

static void mana_destroy_qp(struct paper_qp *qp)
{
	if (mana_qp(qp)->has_taken)
		clear_bit(0, &mana_cq(qp->send_cq)->taken);
}

/* The data path. */

#define MANA_PSN 0xffffff

/* What the queues hold, as providers/mana/gdma.h of rdma-core has it. */

struct mana_send_head {
	__le32 padding; /* elements that do not count, in the low 5 bits */
	__le32 count; /* of elements; in bits 8 to 10, the length of what is here, by 4 */
	__le32 type; /* and flags, and from bit 8 on the sequence number */
	__le32 ssn;
	union {
		__le32 imm;
		struct {
			__le32 addr_hi, addr_lo, rkey, len;
		};
	};
};
static_assert(sizeof(struct mana_send_head) == 32);

struct mana_recv_head {
	__le32 reserved, count, psn, reserved2;
};

struct mana_sge {
	__le64 addr;
	__le32 key, len;
};

#define MANA_WQE_TYPE 0x1f
#define MANA_WQE_SIGNALLED BIT(6)
#define MANA_LONG_HEAD 7 /* one more element's room, which has the immediate data */

struct mana_cqe {
	__le32 type; /* and, from bit 8 on, the error */
	union {
		__le32 len;
		__le32 msn;
	};
	__le32 psn, imm, offset, reserved[10];
	__le32 queue; /* in bit 24 whether it sends, from bit 29 on the owner */
};
static_assert(sizeof(struct mana_cqe) == MANA_CQE);

#define MANA_CQE_SEND 3
#define MANA_CQE_SEND_IMM 4
#define MANA_CQE_WRITE_IMM 6
#define MANA_CQE_ACKED 7
#define MANA_CQE_ERROR 34
#define MANA_CQE_IS_SEND BIT(24)

/* fetch copies what is offset bytes behind the start of a request; queues wrap at their
 * end, and nothing in them crosses a multiple of len there. */
static void fetch(const struct paper_mem *mem, const struct mana_queue *queue, u32 at, u32 offset, void *to, size_t len)
{
	memcpy(to, mem->va + ((at * MANA_UNIT + offset) & (queue->size - 1)), len);
}

static int elements(const struct paper_mem *mem, const struct mana_queue *queue, u32 at, u32 offset, u32 n, struct paper_wr *wr)
{
	struct mana_sge sge;
	u32 i;

	wr->nsge = 0;
	if (n > PAPER_MAX_SGE)
		return -EINVAL;
	for (i = 0; i < n; i++) {
		fetch(mem, queue, at, offset + i * sizeof(sge), &sge, sizeof(sge));
		wr->sge[i] = (struct paper_sge){ le64_to_cpu(sge.addr), le32_to_cpu(sge.len), le32_to_cpu(sge.key) };
	}
	wr->nsge = n;
	return 1;
}

/* next_buffers reads the next request of a queue of buffers. */
static int next_buffers(const struct paper_mem *mem, struct mana_queue *queue, struct paper_wr *wr)
{
	struct mana_recv_head head;
	u32 at = queue->at, n;

	if (at == queue->posted)
		return 0;
	fetch(mem, queue, at, 0, &head, sizeof(head));
	n = le32_to_cpu(head.count) & 0xff;
	queue->at = (at + DIV_ROUND_UP(sizeof(head) + n * sizeof(struct mana_sge), MANA_UNIT)) & MANA_INDEX;
	wr->index = at;
	return elements(mem, queue, at, sizeof(head), n, wr);
}

static int mana_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	wr->flags = 0;
	return next_buffers(&qp->rq, &mana_qp(qp)->recv, wr);
}

static int mana_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	static const enum ib_wr_opcode opcodes[] = {
		[2] = IB_WR_SEND,
		[3] = IB_WR_SEND_WITH_IMM,
		[5] = IB_WR_RDMA_WRITE,
		[6] = IB_WR_RDMA_WRITE_WITH_IMM,
		[7] = IB_WR_RDMA_READ,
	};
	struct mana_qp *own = mana_qp(qp);
	u32 at = own->send.at, n, padding, type;
	struct mana_send_head head;
	struct mana_sge first;
	bool is_long;

	if (at == own->send.posted)
		return 0;
	fetch(&qp->sq, &own->send, at, 0, &head, sizeof(head));
	n = le32_to_cpu(head.count) & 0xff;
	is_long = (le32_to_cpu(head.count) >> 8 & 7) == MANA_LONG_HEAD;
	padding = le32_to_cpu(head.padding) & 0x1f;
	type = le32_to_cpu(head.type) & MANA_WQE_TYPE;
	own->send.at = (at + DIV_ROUND_UP(sizeof(head) + (n + is_long) * sizeof(first), MANA_UNIT)) & MANA_INDEX;
	wr->index = le32_to_cpu(head.type) >> 8;
	wr->flags = le32_to_cpu(head.type) & MANA_WQE_SIGNALLED ? IB_SEND_SIGNALED : 0;
	wr->nsge = 0;
	wr->imm = cpu_to_be32(le32_to_cpu(head.imm));
	if (is_long) {
		fetch(&qp->sq, &own->send, at, sizeof(head), &first, sizeof(first));
		wr->imm = cpu_to_be32((u32)le64_to_cpu(first.addr));
	}
	wr->remote_addr = (u64)le32_to_cpu(head.addr_hi) << 32 | le32_to_cpu(head.addr_lo);
	wr->rkey = le32_to_cpu(head.rkey);
	wr->opcode = IB_WR_SEND;
	if (type < 2 || type == 4 || type >= ARRAY_SIZE(opcodes) || padding > n)
		return -EINVAL;
	wr->opcode = opcodes[type];
	if (wr->opcode == IB_WR_RDMA_READ) {
		u32 psn = wr->index;
		int got = next_buffers(&qp->db, &own->reads, wr);

		wr->index = psn;
		return got ?: -EINVAL;
	}
	return elements(&qp->sq, &own->send, at, sizeof(head) + is_long * sizeof(first), n - padding, wr);
}

static void mana_reset_qp(struct paper_qp *qp)
{
	struct mana_qp *own = mana_qp(qp);

	own->send.posted = own->send.at = own->recv.posted = own->recv.at = own->reads.posted = own->reads.at = 0;
	own->any_acked = own->is_armed = own->failed_send = own->failed_recv = false;
}

/* put writes a completion as number pi of its CQ. */
static void put(struct paper_cq *cq, struct mana_cqe *cqe, u32 queue)
{
	struct mana_cqe *to = cq->buf.va + (size_t)(cq->pi % cq->entries) * sizeof(*cqe);

	cqe->queue = cpu_to_le32(queue | ((cq->pi / cq->entries + 1) & 7) << 29);
	memcpy(to, cqe, offsetof(struct mana_cqe, queue));
	smp_store_release(&to->queue, cqe->queue); /* the owner is seen last */
}

/* tell_acked writes that sends are complete, if that is to be told. */
static bool tell_acked(struct paper_qp *qp)
{
	struct mana_cqe cqe = { .type = cpu_to_le32(MANA_CQE_ACKED) };
	struct mana_qp *own = mana_qp(qp);

	if (!own->is_armed || !own->any_acked || (own->acked - own->armed) & 0x800000)
		return false;
	own->is_armed = false;
	cqe.psn = cpu_to_le32(own->acked);
	put(qp->send_cq, &cqe, qp->num | 1);
	return true;
}

/* What the library makes a status of (vendor_error_to_wc_error in its cq.c). */
static u32 error_of(enum ib_wc_status status)
{
	static const u32 codes[] = {
		[IB_WC_WR_FLUSH_ERR] = 0x1c7, /* RX_NOT_EMPTY_ON_DISABLE */
		[IB_WC_LOC_LEN_ERR] = 0x102, /* RX_MSG_LEN_OVFL */
		[IB_WC_LOC_QP_OP_ERR] = 0x201, /* TX_GDMA_CORRUPTED_WQE */
		[IB_WC_LOC_PROT_ERR] = 0x206, /* TX_ATB_MSG_ACCESS_VIOLATION */
		[IB_WC_REM_INV_REQ_ERR] = 0x003, /* RX_OP_REQ */
		[IB_WC_REM_ACCESS_ERR] = 0x162, /* RX_REMOTE_ACCESS_NAK */
		[IB_WC_REM_OP_ERR] = 0x163, /* RX_REMOTE_OP_ERR_NAK */
		[IB_WC_RNR_RETRY_EXC_ERR] = 0x164, /* RX_RNR_NAK */
		[IB_WC_RETRY_EXC_ERR] = 0x1c6, /* TX_RETRY_LIMIT_EXCEEDED */
	};

	return PAPER_CODE(codes, status, 0x3ff);
}

static int mana_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	u32 queue = wc->qp->num | (wc->recv ? 0 : MANA_CQE_IS_SEND), mtu, packets;
	struct mana_qp *own = mana_qp(wc->qp);
	bool *failed = wc->recv ? &own->failed_recv : &own->failed_send;
	struct mana_cqe cqe = {};

	if (wc->status != IB_WC_SUCCESS) {
		if (*failed)
			return 1; /* the library flushes it */
		*failed = true;
		cqe.type = cpu_to_le32(MANA_CQE_ERROR | error_of(wc->status) << 8);
		cqe.psn = cpu_to_le32(wc->wr->index & MANA_PSN);
		put(cq, &cqe, queue);
		return 0;
	}
	if (wc->recv) {
		cqe.type = cpu_to_le32(wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ? MANA_CQE_WRITE_IMM :
				       wc->flags & IB_WC_WITH_IMM ? MANA_CQE_SEND_IMM : MANA_CQE_SEND);
		cqe.len = cpu_to_le32(wc->byte_len);
		cqe.imm = cpu_to_le32(be32_to_cpu(wc->imm));
		cqe.offset = cpu_to_le32(wc->wr->index * MANA_UNIT);
		put(cq, &cqe, queue);
		return 0;
	}
	mtu = ib_mtu_enum_to_int(wc->qp->attr.path_mtu);
	packets = max(DIV_ROUND_UP(wc->byte_len, max(mtu, 256U)), 1U);
	own->acked = (wc->wr->index + packets - 1) & MANA_PSN;
	own->any_acked = true;
	return tell_acked(wc->qp) ? 0 : 1;
}

/* Doorbells. */

static struct paper_qp *qp_of(struct paper_ucontext *ctx, u32 id)
{
	struct paper_qp *qp = paper_find_qp(to_paper_dev(ctx->ib.device), id & ~3);

	return qp && mana_qp(qp)->ctx == ctx ? qp : NULL;
}

/* arm reads where the process is in its CQ, modulo 8 times its size, from the first
 * lap's end on; further, if it armed the same place before. */
static void arm(struct paper_cq *cq, u32 place)
{
	u32 behind = (cq->pi + cq->entries - place) % (cq->entries * 8);

	paper_arm(cq, PAPER_ARM_NEXT, behind <= cq->entries ? cq->pi - behind : cq->pi);
}

static void rung(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	u32 id = value & 0xffffff, high = value >> 32;
	struct paper_cq *cq;
	struct paper_qp *qp;

	if (size != sizeof(value))
		return;
	qp = offset < 0x800 ? qp_of(ctx, id) : NULL;
	if (qp && offset == 0) {
		mana_qp(qp)->send.posted = high / MANA_UNIT;
	} else if (qp && offset == 0x400) {
		(id & 1 ? &mana_qp(qp)->reads : &mana_qp(qp)->recv)->posted = high / MANA_UNIT;
	} else if (qp && offset == 0x408) {
		mana_qp(qp)->armed = high & MANA_PSN;
		mana_qp(qp)->is_armed = true;
		if (tell_acked(qp)) {
			qp->send_cq->pi++;
			paper_count(dev, PAPER_COMPLETIONS);
		}
	} else if (offset == 0x800) {
		cq = xa_load(&dev->cqs, id);
		if (cq && mana_cq(cq)->ctx == ctx && high >> 31)
			arm(cq, high & S32_MAX);
	}
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
	.bus_driver = "mana",
	.link = IB_LINK_LAYER_ETHERNET,
	.vectors = 4,
	.qp_types = BIT(IB_QPT_RC) | BIT(IB_QPT_RAW_PACKET),
	.no_qp_type = -EINVAL,
	.qp_shift = 2,
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
		.local_ca_ack_delay = 16,
	},
	.ops = &mana_ops,
	.leave_out = mana_leave_out,
	.query_device = mana_query_device,
	.alloc_ucontext = mana_alloc_ucontext,
	.doorbell_pages = 1,
	.stored = rung,
	.create_cq = mana_create_cq,
	.create_qp = mana_create_qp,
	.modify_qp = mana_modify_qp,
	.destroy_qp = mana_destroy_qp,
	.next_send = mana_next_send,
	.next_recv = mana_next_recv,
	.complete = mana_complete,
	.reset_qp = mana_reset_qp,
};
