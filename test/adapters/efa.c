// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Amazon's Elastic Fabric Adapter, for libefa: UD, and SRD by efadv_create_qp_ex.
 *
 * The library's own, and so executed: what it refuses (other types than UD and SRD,
 * SRQs, sizes above the limits, a channel where there are no event queues, posting in
 * a wrong state or unsignalled, arming for solicited events), how it rounds sizes and
 * shares out receive descriptors, and all of its data path. Of Debian 12's (44.0) too
 * that it unmaps a CQ before the kernel refuses to destroy it, and dies of the next
 * poll, which later ones do not; of all that a queue pair without elements to receive
 * is a division by zero, and that arming a CQ without a channel writes to address 0.
 *
 * Modelled after the driver of Linux 6.1, drivers/infiniband/hw/efa:
 *   the order of checks and their errnos       efa_create_cq, efa_create_qp
 *                                              (efa_verbs.c), in which a queue pair
 *                                              keeps what was asked as it was asked
 *   what query_qp and modify_qp refuse         efa_query_qp, efa_modify_qp_validate
 *   access flags of regions                    efa_alloc_mr: others EOPNOTSUPP
 *   the handshake, and what a device answers   efa_user_comp_handshake,
 *                                              efa_alloc_ucontext, efa_query_device
 *   a port of no link layer, with one GID      efa_query_port, efa_port_link_layer
 *   queues in the kernel's memory              efa_create_cq, qp_mmap_entries_setup
 *   a vector for each event queue, else one    efa_ib_device_add (efa_main.c)
 *   nothing in the kernel log                  refusals are ibdev_dbg
 * Limits: device 0xefa1 as captured in openucx/ucx, contrib/ibmock/config.c. The size
 * of the send queue's memory (max_llq_size) follows from max_qp_wr there.
 *
 * Not known, and assumed: one sub-CQ; no limit to a batch of sends and no least depth
 * (max_tx_batch, min_sq_depth); what the device does in the states ERR and SQD; that
 * each arming is heeded, whatever its sequence number (CMD_SN); that a CQ that is full
 * is of no use any more, and one without a channel has no doorbell. Not modelled: RDMA
 * reads that wait, packets that arrive out of order, statistics, dmabuf.
 *
 * "efa" has no event queues, as the first generations; "efa_eq" has some.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/efa-abi.h>

#include "paper.h"

#define EFA_MTU 8928
#define EFA_INLINE 32
#define EFA_MAX_SQ 4096
#define EFA_MAX_RQ 32768
#define EFA_SQ_SGE 2
#define EFA_RQ_SGE 3
#define EFA_RDMA_SIZE (1 << 30)
#define EFA_LLQ_SIZE (EFA_MAX_SQ * (u32)sizeof(struct efa_send))
#define EFA_SUB_CQS 1
#define EFA_RECV_RING (65536 * (u32)sizeof(struct efa_recv)) /* indices have 16 bits */
#define EFA_NO_AH 0xffff

/* What the queues hold: little-endian, as the library writes and reads it. */

struct efa_buf {
	__le32 len, lkey;
	__le64 addr;
};

struct efa_send {
	__le16 req_id;
	u8 ctrl1, ctrl2;
	__le16 dest_qp, len;
	__le32 imm;
	__le16 ah, reserved;
	__le32 qkey;
	u8 reserved2[12];
	union {
		struct efa_buf sge[EFA_SQ_SGE];
		u8 data[EFA_INLINE];
		struct {
			__le32 len, rkey;
			__le64 addr;
			struct efa_buf to;
		} read;
	};
};
static_assert(sizeof(struct efa_send) == 64);

#define EFA_SEND_OP 0x0f /* of ctrl1 */
#define EFA_OP_SEND 0
#define EFA_OP_READ 1
#define EFA_SEND_IMM BIT(4)
#define EFA_SEND_INLINE BIT(5)
#define EFA_SEND_META BIT(7)
#define EFA_SEND_FIRST BIT(2) /* of ctrl2 */
#define EFA_SEND_LAST BIT(3)
#define EFA_SEND_SIGNALLED BIT(4)

struct efa_recv {
	__le64 addr;
	__le16 req_id, len;
	__le32 lkey;
};
static_assert(sizeof(struct efa_recv) == 16);

#define EFA_KEY 0xffffff
#define EFA_RECV_FIRST BIT(30) /* of lkey */
#define EFA_RECV_LAST BIT(31)

struct efa_cqe {
	union {
		struct {
			__le16 req_id;
			u8 status, flags;
			__le16 qp, len;
		};
		u64 first;
	};
	/* of a receive */
	__le16 ah, src_qp;
	__le32 imm;
	union ib_gid src; /* in entries of 32 bytes, if the handle is unknown */
};
static_assert(sizeof(struct efa_cqe) == 32);

#define EFA_SMALL_CQE 16
#define EFA_CQE_PHASE BIT(0) /* of flags */
#define EFA_CQE_SENT (1 << 1)
#define EFA_CQE_RECEIVED (2 << 1)
#define EFA_CQE_IMM BIT(3)

#define EFA_ARM BIT(31) /* of the doorbell of a CQ, whose low half is the consumer index */

/* Memory that the process maps: the kernel's, or a doorbell that traps. */

struct efa_area {
	struct rdma_user_mmap_entry entry;
	void *mem; /* NULL: it traps */
	u32 cq; /* whose doorbell it is then */
};

struct efa_cq {
	struct efa_area *ring, *db;
	u32 size; /* of an entry */
	u32 consumed; /* as the doorbell said last */
	bool src;
};

struct efa_qp {
	struct efa_area *sq, *sq_db, *rq, *rq_db;
	u32 sq_entries, rq_entries; /* in descriptors */
	u32 db; /* where a doorbell is in its page */
	u16 rq_taken; /* descriptors */
};

PAPER_OWN(efa_cq, efa_cq, paper_cq)
PAPER_OWN(efa_qp, efa_qp, paper_qp)

static bool has_event_queues(struct ib_device *ib)
{
	return to_paper_dev(ib)->vendor == &paper_efa_eq;
}

/* make_area makes memory of len bytes that can be mapped by *key; without memory if cq is set. */
static struct efa_area *make_area(struct paper_ucontext *ctx, size_t len, u32 cq, u64 *key)
{
	struct efa_area *area = kzalloc(sizeof(*area), GFP_KERNEL);

	if (!area)
		return NULL;
	area->cq = cq;
	if (!cq) {
		area->mem = vmalloc_user(PAGE_ALIGN(len));
		if (!area->mem)
			goto free;
	}
	if (rdma_user_mmap_entry_insert(&ctx->ib, &area->entry, PAGE_ALIGN(len)))
		goto free;
	*key = rdma_user_mmap_get_offset(&area->entry);
	return area;

free:
	vfree(area->mem);
	kfree(area);
	return NULL;
}

static void efa_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct efa_area *area = paper_of(efa_area, entry, entry);

	vfree(area->mem);
	kfree(area);
}

static void drop(struct efa_area **area)
{
	if (*area)
		rdma_user_mmap_entry_remove(&(*area)->entry);
	*area = NULL;
}

/* rung is called when a process has stored to the doorbell of a CQ. */
static void rung(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	struct paper_cq *cq;

	if (size != sizeof(u32))
		return;
	cq = xa_load(&dev->cqs, cookie);
	if (cq && efa_cq(cq)->db && efa_cq(cq)->db->entry.ucontext == &ctx->ib) {
		efa_cq(cq)->consumed = cq->pi - (u16)(cq->pi - value);
		if (value & EFA_ARM)
			paper_arm(cq, PAPER_ARM_NEXT, efa_cq(cq)->consumed);
	}
}

static int efa_mmap(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(&ctx->ib, vma);
	struct efa_area *area;
	int err;

	if (!entry)
		return -EINVAL;
	area = paper_of(efa_area, entry, entry);
	if (area->mem)
		err = remap_vmalloc_range(vma, area->mem, 0);
	else
		err = paper_mmap_trapped(ctx, vma, rung, area->cq);
	rdma_user_mmap_entry_put(entry);
	return err;
}

/* The device. */

static int efa_query_device(struct paper_dev *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct efa_ibv_ex_query_device_resp resp = {
		.max_sq_wr = EFA_MAX_SQ,
		.max_rq_wr = EFA_MAX_RQ,
		.max_sq_sge = EFA_SQ_SGE,
		.max_rq_sge = EFA_RQ_SGE,
		.max_rdma_size = EFA_RDMA_SIZE,
		.device_caps = EFA_QUERY_DEVICE_CAPS_CQ_WITH_SGID | EFA_QUERY_DEVICE_CAPS_RDMA_READ | EFA_QUERY_DEVICE_CAPS_RNR_RETRY,
	};

	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	/* The driver gives its device no GUID. */
	dev->ib.node_guid = 0;
	attr->sys_image_guid = 0;
	if (has_event_queues(&dev->ib))
		resp.device_caps |= EFA_QUERY_DEVICE_CAPS_CQ_NOTIFICATIONS;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int efa_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	unsigned int number = 0;

	if (sscanf(dev_name(&to_paper_dev(ib)->parent), "paper%u", &number) != 1)
		return -EINVAL;
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = cpu_to_be64(0x0cefa0fffe000000ULL + number);
	return 0;
}

static void efa_leave_out(struct ib_device_ops *ops)
{
	ops->get_dev_fw_str = NULL;
}

static int efa_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct efa_ibv_alloc_ucontext_resp resp = {
		.cmds_supp_udata_mask = EFA_USER_CMDS_SUPP_UDATA_QUERY_DEVICE | EFA_USER_CMDS_SUPP_UDATA_CREATE_AH,
		.sub_cqs_per_cq = EFA_SUB_CQS,
		.inline_buf_size = EFA_INLINE,
		.max_llq_size = EFA_LLQ_SIZE,
	};

	/* The handshake is about max_tx_batch and min_sq_wr, which this device lacks. */
	return paper_respond(udata, &resp, sizeof(resp));
}

static int efa_alloc_pd(struct paper_pd *pd, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct efa_ibv_alloc_pd_resp resp = { .pdn = pd->num };

	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int efa_create_ah(struct paper_ah *ah, struct ib_udata *udata)
{
	struct efa_ibv_create_ah_resp resp = { .efa_address_handle = ah->num };

	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* efa_request reads a request, none of whose bytes beyond what is known may be set. */
static int efa_request(struct ib_udata *udata, void *cmd, size_t len, size_t least)
{
	int err = paper_request(udata, cmd, len, least);

	if (!err && udata->inlen > len && !ib_is_udata_cleared(udata, len, udata->inlen - len))
		return -EINVAL;
	return err;
}

/* Completion queues. */

static void efa_destroy_cq(struct paper_cq *cq)
{
	drop(&efa_cq(cq)->db);
	drop(&efa_cq(cq)->ring);
}

static int efa_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	const struct ib_device_attr *limits = &to_paper_dev(cq->ib.device)->vendor->limits;
	struct efa_ibv_create_cq_resp resp = { .cq_idx = cq->num };
	struct efa_cq *own = efa_cq(cq);
	struct efa_ibv_create_cq cmd;
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > limits->max_cqe)
		return -EINVAL;
	err = efa_request(udata, &cmd, sizeof(cmd), offsetofend(typeof(cmd), num_sub_cqs));
	if (err)
		return err;
	if (cmd.comp_mask || memchr_inv(cmd.reserved_58, 0, sizeof(cmd.reserved_58)))
		return -EINVAL;
	own->src = cmd.flags & EFA_CREATE_CQ_WITH_SGID;
	if (cmd.cq_entry_size != sizeof(struct efa_cqe) && (own->src || cmd.cq_entry_size != EFA_SMALL_CQE))
		return -EINVAL;
	if (cmd.num_sub_cqs != EFA_SUB_CQS)
		return -EINVAL;
	/* No library asks for this; the driver would read an event queue that is not there. */
	if (cmd.flags & EFA_CREATE_CQ_WITH_COMPLETION_CHANNEL && !has_event_queues(cq->ib.device))
		return -EOPNOTSUPP;

	own->size = cmd.cq_entry_size;
	cq->entries = attr->cqe;
	cq->ib.cqe = attr->cqe;
	resp.q_mmap_size = PAGE_ALIGN(own->size * attr->cqe);
	own->ring = make_area(ctx, resp.q_mmap_size, 0, &resp.q_mmap_key);
	if (!own->ring)
		return -ENOMEM;
	if (cmd.flags & EFA_CREATE_CQ_WITH_COMPLETION_CHANNEL) {
		own->db = make_area(ctx, PAGE_SIZE, cq->num, &resp.db_mmap_key);
		if (!own->db)
			return -ENOMEM;
		resp.comp_mask |= EFA_CREATE_CQ_RESP_DB_OFF;
		resp.db_off = cq->num * sizeof(u32) & ~PAGE_MASK;
	}
	return paper_respond(udata, &resp, sizeof(resp));
}

/* Queue pairs. */

static void efa_destroy_qp(struct paper_qp *qp)
{
	struct efa_qp *own = efa_qp(qp);

	drop(&own->rq);
	drop(&own->rq_db);
	drop(&own->sq);
	drop(&own->sq_db);
}

static int efa_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct efa_ibv_create_qp_resp resp = {};
	const struct ib_qp_cap *cap = &attr->cap;
	struct efa_qp *own = efa_qp(qp);
	struct efa_ibv_create_qp cmd;
	int err;

	if (cap->max_send_wr > EFA_MAX_SQ || cap->max_recv_wr > EFA_MAX_RQ || cap->max_send_sge > EFA_SQ_SGE ||
	    cap->max_recv_sge > EFA_RQ_SGE || cap->max_inline_data > EFA_INLINE)
		return -EINVAL;
	if (attr->srq)
		return -EOPNOTSUPP;
	err = efa_request(udata, &cmd, sizeof(cmd), offsetofend(typeof(cmd), driver_qp_type));
	if (err)
		return err;
	if (cmd.comp_mask)
		return -EINVAL;
	if (qp->type == IB_QPT_DRIVER && cmd.driver_qp_type != EFA_QP_DRIVER_TYPE_SRD)
		return -EOPNOTSUPP;

	/* From here on it is the device that decides; it is not known with which errnos. */
	if (cmd.sq_ring_size > EFA_LLQ_SIZE || cmd.rq_ring_size > EFA_RECV_RING)
		return -EINVAL;
	own->sq_entries = cmd.sq_ring_size / sizeof(struct efa_send);
	own->rq_entries = cmd.rq_ring_size / sizeof(struct efa_recv);
	if (!is_power_of_2(own->sq_entries) || own->sq_entries < cap->max_send_wr)
		return -EINVAL;
	if (own->rq_entries && (!is_power_of_2(own->rq_entries) || own->rq_entries < cap->max_recv_wr))
		return -EINVAL;

	own->db = qp->num * sizeof(u32) & ~PAGE_MASK;
	own->sq_db = make_area(ctx, PAGE_SIZE, 0, &resp.sq_db_mmap_key);
	own->sq = make_area(ctx, cmd.sq_ring_size, 0, &resp.llq_desc_mmap_key);
	if (!own->sq_db || !own->sq)
		return -ENOMEM;
	resp.sq_db_offset = own->db;
	if (own->rq_entries) {
		own->rq_db = make_area(ctx, PAGE_SIZE, 0, &resp.rq_db_mmap_key);
		own->rq = make_area(ctx, cmd.rq_ring_size, 0, &resp.rq_mmap_key);
		if (!own->rq_db || !own->rq)
			return -ENOMEM;
		resp.rq_db_offset = own->db;
		resp.rq_mmap_size = PAGE_ALIGN(cmd.rq_ring_size);
	}
	qp->cap = *cap;
	return paper_respond(udata, &resp, sizeof(resp));
}

static int efa_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);

	if (mask & ~(IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY | IB_QP_SQ_PSN | IB_QP_CAP | IB_QP_RNR_RETRY))
		return -EOPNOTSUPP;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	mutex_lock(&dev->lock);
	attr->qp_state = paper_state(qp);
	attr->qkey = qp->attr.qkey;
	attr->sq_psn = qp->attr.sq_psn;
	attr->rnr_retry = qp->attr.rnr_retry;
	mutex_unlock(&dev->lock);
	attr->port_num = 1;
	attr->cap = qp->cap;
	init->qp_type = ib->qp_type;
	init->recv_cq = ib->recv_cq;
	init->send_cq = ib->send_cq;
	init->qp_context = ib->qp_context;
	init->cap = qp->cap;
	return 0;
}

/* What the core does not refuse, or with another errno. */
static int efa_modify_qp(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	if (udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	if (mask & ~(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY |
		     IB_QP_SQ_PSN | IB_QP_RNR_RETRY))
		return -EOPNOTSUPP;
	/* Of SRD alone, and on the way from RTR to RTS, the only one that takes a PSN. */
	if (mask & IB_QP_RNR_RETRY && (qp->type != IB_QPT_DRIVER || !(mask & IB_QP_SQ_PSN)))
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EOPNOTSUPP;
	return 0;
}

/* The data path. Doorbells of queues are words that hold the producer's index. */

static u16 producer(struct paper_qp *qp, const struct efa_area *db)
{
	u16 index = READ_ONCE(*(u32 *)(db->mem + efa_qp(qp)->db));

	smp_rmb(); /* descriptors are read after it */
	return index;
}

static void sge(struct paper_sge *to, const struct efa_buf *from)
{
	to->addr = le64_to_cpu(from->addr);
	to->len = le32_to_cpu(from->len);
	to->lkey = le32_to_cpu(from->lkey) & EFA_KEY;
}

/* address sets where a request goes, if its handle is one of its protection domain. */
static int address(struct paper_qp *qp, struct paper_wr *wr, u16 handle)
{
	struct paper_ah *ah = xa_load(&to_paper_dev(qp->ib.device)->ahs, handle);

	if (!ah || ah->ib.pd != qp->ib.pd)
		return -EINVAL;
	wr->to.global = true;
	wr->to.gid = ah->attr.grh.dgid;
	return 0;
}

static int efa_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	struct efa_qp *own = efa_qp(qp);
	const struct efa_send *ring = own->sq->mem;
	unsigned int i, len;
	struct efa_send d;

	if (producer(qp, own->sq_db) == (u16)qp->sq_ci)
		return 0;
	d = ring[qp->sq_ci & (own->sq_entries - 1)];
	len = le16_to_cpu(d.len);
	wr->id = le16_to_cpu(d.req_id);
	wr->flags = d.ctrl2 & EFA_SEND_SIGNALLED ? IB_SEND_SIGNALED : 0;
	wr->imm = cpu_to_be32(le32_to_cpu(d.imm));
	wr->to.qpn = le16_to_cpu(d.dest_qp);
	wr->to.qkey = le32_to_cpu(d.qkey);
	wr->opcode = d.ctrl1 & EFA_SEND_IMM ? IB_WR_SEND_WITH_IMM : IB_WR_SEND;
	wr->nsge = 0;
	if (!(d.ctrl1 & EFA_SEND_META) || !(d.ctrl2 & EFA_SEND_FIRST) || !(d.ctrl2 & EFA_SEND_LAST))
		return -EINVAL;
	if (address(qp, wr, le16_to_cpu(d.ah)))
		return -EINVAL;

	switch (d.ctrl1 & EFA_SEND_OP) {
	case EFA_OP_SEND:
		if (d.ctrl1 & EFA_SEND_INLINE) {
			if (len > EFA_INLINE)
				return -EINVAL;
			wr->flags |= IB_SEND_INLINE;
			wr->inline_len = len;
			memcpy(wr->inline_data, d.data, len);
			return 1;
		}
		if (len > EFA_SQ_SGE)
			return -EINVAL;
		for (i = 0; i < len; i++)
			sge(&wr->sge[i], &d.sge[i]);
		wr->nsge = len;
		return 1;
	case EFA_OP_READ:
		if (qp->type != IB_QPT_DRIVER || len != 1)
			return -EINVAL;
		wr->opcode = IB_WR_RDMA_READ;
		wr->remote_addr = le64_to_cpu(d.read.addr);
		wr->rkey = le32_to_cpu(d.read.rkey);
		sge(&wr->sge[0], &d.read.to);
		wr->nsge = 1;
		return 1;
	}
	return -EINVAL;
}

static int efa_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	struct efa_qp *own = efa_qp(qp);
	const struct efa_recv *ring;
	struct efa_recv d;
	u16 posted;

	if (!own->rq)
		return 0;
	ring = own->rq->mem;
	posted = producer(qp, own->rq_db) - own->rq_taken;
	if (!posted)
		return 0;
	wr->flags = 0;
	wr->nsge = 0;
	do {
		d = ring[own->rq_taken++ & (own->rq_entries - 1)];
		if (!wr->nsge)
			wr->id = le16_to_cpu(d.req_id);
		wr->sge[wr->nsge] = (struct paper_sge){ le64_to_cpu(d.addr), le16_to_cpu(d.len), le32_to_cpu(d.lkey) & EFA_KEY };
		wr->nsge++;
	} while (!(le32_to_cpu(d.lkey) & EFA_RECV_LAST) && --posted && wr->nsge < EFA_RQ_SGE);
	return le32_to_cpu(d.lkey) & EFA_RECV_LAST ? 1 : -EINVAL;
}

static void efa_reset_qp(struct paper_qp *qp)
{
	struct efa_qp *own = efa_qp(qp);

	/* The library counts from 0 again. */
	own->rq_taken = 0;
	WRITE_ONCE(*(u32 *)(own->sq_db->mem + own->db), 0);
	if (own->rq)
		WRITE_ONCE(*(u32 *)(own->rq_db->mem + own->db), 0);
}

/* What the library makes a status of (to_ibv_status in its verbs.c). */
static u8 status(enum ib_wc_status status)
{
	static const u8 codes[] = {
		[IB_WC_WR_FLUSH_ERR] = 1, /* FLUSHED */
		[IB_WC_LOC_QP_OP_ERR] = 3, /* LOCAL_ERROR_INVALID_OP_TYPE */
		[IB_WC_LOC_PROT_ERR] = 5, /* LOCAL_ERROR_INVALID_LKEY */
		[IB_WC_LOC_LEN_ERR] = 6, /* LOCAL_ERROR_BAD_LENGTH */
		[IB_WC_REM_ACCESS_ERR] = 7, /* REMOTE_ERROR_BAD_ADDRESS */
		[IB_WC_REM_ABORT_ERR] = 8, /* REMOTE_ERROR_ABORT */
		[IB_WC_REM_INV_RD_REQ_ERR] = 9, /* REMOTE_ERROR_BAD_DEST_QPN */
		[IB_WC_RNR_RETRY_EXC_ERR] = 10, /* REMOTE_ERROR_RNR */
		[IB_WC_REM_INV_REQ_ERR] = 11, /* REMOTE_ERROR_BAD_LENGTH */
		[IB_WC_BAD_RESP_ERR] = 12, /* REMOTE_ERROR_BAD_STATUS */
		[IB_WC_RETRY_EXC_ERR] = 13, /* LOCAL_ERROR_UNRESP_REMOTE */
		[IB_WC_RESP_TIMEOUT_ERR] = 13, /* LOCAL_ERROR_UNRESP_REMOTE */
	};

	return PAPER_CODE(codes, status, 2); /* LOCAL_ERROR_QP_INTERNAL_ERROR */
}

/* handle_of returns the protection domain's handle of an address, if it has one. */
static u16 handle_of(struct paper_dev *dev, struct ib_pd *pd, const union ib_gid *gid)
{
	struct paper_ah *ah;
	unsigned long i;

	xa_for_each (&dev->ahs, i, ah)
		if (ah->ib.pd == pd && !memcmp(&ah->attr.grh.dgid, gid, sizeof(*gid)))
			return i;
	return EFA_NO_AH;
}

static int efa_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	struct paper_dev *dev = to_paper_dev(cq->ib.device);
	struct efa_cq *own = efa_cq(cq);
	struct efa_cqe *to, cqe = {
		.req_id = cpu_to_le16(wc->wr->id),
		.status = status(wc->status),
		.flags = wc->recv ? EFA_CQE_RECEIVED : EFA_CQE_SENT,
		.qp = cpu_to_le16(wc->qp->num),
	};

	/* Without a doorbell the device does not know what was consumed. */
	if (own->db && cq->pi - own->consumed >= cq->entries)
		return -ENOSPC;
	if (wc->recv) {
		cqe.len = cpu_to_le16(wc->byte_len);
		cqe.src_qp = cpu_to_le16(wc->src_qp);
		if (wc->flags & IB_WC_WITH_IMM) {
			cqe.flags |= EFA_CQE_IMM;
			cqe.imm = cpu_to_le32(be32_to_cpu(wc->imm));
		}
		/* Who sent it is this same port. */
		efa_query_gid(&dev->ib, 1, 0, &cqe.src);
		cqe.ah = cpu_to_le16(handle_of(dev, wc->qp->ib.pd, &cqe.src));
		if (cqe.ah != cpu_to_le16(EFA_NO_AH) || !own->src)
			memset(&cqe.src, 0, sizeof(cqe.src));
	}
	if (!(cq->pi / cq->entries & 1))
		cqe.flags |= EFA_CQE_PHASE;
	to = own->ring->mem + cq->pi % cq->entries * own->size;
	memcpy((u8 *)to + sizeof(to->first), (u8 *)&cqe + sizeof(cqe.first), own->size - sizeof(cqe.first));
	smp_store_release(&to->first, cqe.first); /* the phase is seen last */
	return 0;
}

static const struct ib_device_ops efa_ops = {
	.mmap_free = efa_mmap_free,
	.query_gid = efa_query_gid,
	.query_qp = efa_query_qp,
};

#define PAPER_EFA(its_name, its_vectors) { \
	.name = its_name, \
	.device = "efa_%d", \
	.driver_id = RDMA_DRIVER_EFA, \
	.abi = EFA_UVERBS_ABI_VERSION, \
	.pci_vendor = 0x1d0f, \
	.pci_device = 0xefa1, \
	.bus_driver = "efa", \
	.link = IB_LINK_LAYER_UNSPECIFIED, \
	.vectors = its_vectors, \
	.qp_types = BIT(IB_QPT_UD) | BIT(31), \
	.own_sizes = true, \
	.mr_access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ, \
	.no_mr_access = -EOPNOTSUPP, \
	.limits = { \
		.max_mr_size = 103079215104ULL, \
		.page_size_cap = 0xfffff000, \
		.hw_ver = 0xefa1, \
		.max_qp = 256, \
		.max_qp_wr = EFA_MAX_SQ, \
		.max_send_sge = EFA_SQ_SGE, \
		.max_recv_sge = EFA_RQ_SGE, \
		.max_sge_rd = 1, \
		.max_cq = 512, \
		.max_cqe = 32768, \
		.max_mr = 262144, \
		.max_pd = 256, \
		.max_ah = 1024, \
	}, \
	.port = { \
		.lmc = 1, \
		.gid_tbl_len = 1, \
		.max_msg_sz = EFA_MTU, \
		.active_mtu = IB_MTU_4096, \
	}, \
	.ops = &efa_ops, \
	.leave_out = efa_leave_out, \
	.query_device = efa_query_device, \
	.alloc_ucontext = efa_alloc_ucontext, \
	.mmap = efa_mmap, \
	.alloc_pd = efa_alloc_pd, \
	.create_ah = efa_create_ah, \
	.create_cq = efa_create_cq, \
	.create_qp = efa_create_qp, \
	.modify_qp = efa_modify_qp, \
	.destroy_cq = efa_destroy_cq, \
	.destroy_qp = efa_destroy_qp, \
	.next_send = efa_next_send, \
	.next_recv = efa_next_recv, \
	.complete = efa_complete, \
	.reset_qp = efa_reset_qp, \
}

const struct paper_vendor paper_efa = PAPER_EFA("efa", 1);
const struct paper_vendor paper_efa_eq = PAPER_EFA("efa_eq", 2);
