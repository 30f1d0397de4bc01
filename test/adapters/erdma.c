// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Alibaba's eRDMA, for liberdma: iWARP, as drivers/infiniband/hw/erdma of Linux 6.1
 * has it.
 *
 * Real, as the library does it (providers/erdma of rdma-core): RC only, no SRQ, no
 * address handles; CQs are powers of two, 64 at least, and whatever is wrong with one
 * is EIO (erdma_verbs.c: erdma_create_cq, erdma_destroy_cq); errors of posts are
 * negative (erdma_post_send, erdma_post_recv), a post in ERR is -EIO, and more than one
 * SGE of a receive -EINVAL; each request and each completion.
 *
 * Modelled, as the kernel driver decides it (erdma_verbs.c, unless said otherwise):
 *  - of a QP nothing is written back, and query_qp tells the send queue in blocks of
 *    32 bytes, 4 for each request and rounded up, the receive queue rounded up, inline
 *    data of 96 bytes whatever was asked, no more than that (erdma_create_qp,
 *    erdma_qp_validate_cap, erdma_query_qp); a queue of depth 0 is EINVAL;
 *  - states: RESET and INIT are one and told as INIT, no transition is checked, RTR
 *    changes nothing, RTS is EINVAL without a connection that rdma_cm made (erdma_qp.c:
 *    erdma_modify_qp_internal), and nothing leaves ERR;
 *  - CQs: cqe is the depth (erdma_create_cq).
 * The limits are those of the driver (erdma_verbs.h); those that the firmware tells
 * (erdma_main.c: erdma_dev_attrs_init) are chosen here: 131,071 QPs, receive queues of
 * 8,192, CQs of 1,048,576 entries, regions of 64 GiB.
 *
 * Not modelled: connections, and so all of the data path but what is flushed when a
 * pair that was never connected enters ERR. Whether the device flushes such a pair is
 * not known from the source. The queue's consumer is told to the device by arming
 * alone, so that an overflow is not noticed.
 */
#include <linux/bitfield.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <rdma/erdma-abi.h>
#include <rdma/ib_mad.h>

#include "paper.h"

enum {
	/* erdma_verbs.h and erdma_hw.h of the driver */
	MAX_SEND_WR = 8192,
	MAX_RECV_WR = 8192,
	MAX_SEND_SGE = 6,
	MAX_RECV_SGE = 1,
	MAX_INLINE = 96,
	MAX_ORD = 128,
	MAX_CQE = 1 << 20,
	MAX_QP = 128 * 1024,
	BLOCK = 32,
	BLOCKS_PER_WQE = 4,
	RQE_SIZE = 32,
	CQE_SIZE = 32,
	RECORD_SIZE = 8,
	HW_PAGE = 4096,
	OP_RECEIVE = 4,
	SYNDROME_FLUSHED = 15,
	SYNDROME_GENERAL = 1,
};

#define SQE_BLOCKS GENMASK_ULL(54, 52) /* less one */
#define SQE_OPCODE GENMASK_ULL(31, 27)
#define SQE_SIGNALED BIT_ULL(22)
#define RECORD_PI GENMASK_ULL(15, 0)

#define CQE_OWNER BIT(31)
#define CQE_OPCODE GENMASK(23, 16)
#define CQE_RECEIVE BIT(8)

#define ARM_INDEX GENMASK_ULL(63, 56)
#define ARM_SET BIT_ULL(31)
#define ARM_SOLICITED BIT_ULL(30)
#define ARM_CI GENMASK_ULL(23, 0)

/* priv of a CQ: the index of the last arming, and 1 */
enum { CQ_ARMED };
/* priv of a QP: the send queue is counted in blocks */
enum { QP_SQ_SIZE, QP_RQ_SIZE, QP_RQ_OFFSET, QP_SQ_POS };

/* erdma_alloc_ucontext */
static int erdma_alloc_ucontext(struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct erdma_uresp_alloc_ctx resp = {
		.dev_id = to_paper_dev(ctx->ib.device)->vendor->pci_device,
		.sdb = 0 << PAGE_SHIFT,
		.rdb = 1 << PAGE_SHIFT,
		.cdb = 2 << PAGE_SHIFT,
	};

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* erdma_create_cq */
static int erdma_create_cq(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct erdma_uresp_create_cq resp = { .cq_id = cq->num };
	struct erdma_ureq_create_cq req;
	u32 depth;
	int err;

	if (!attr->cqe || attr->cqe > MAX_CQE)
		return -EINVAL;
	err = paper_request(udata, &req, sizeof(req), 0);
	if (err)
		return err;
	depth = roundup_pow_of_two(attr->cqe);
	err = paper_pin(cq->ib.device, &cq->buf, req.qbuf_va, (size_t)depth * CQE_SIZE, IB_ACCESS_LOCAL_WRITE) ?:
	      paper_pin(cq->ib.device, &cq->db, req.db_record_va, RECORD_SIZE, 0);
	if (err)
		return err;
	cq->priv[CQ_ARMED] = 0x100; /* none */
	cq->entries = depth;
	cq->ib.cqe = depth;
	resp.num_cqe = depth;
	return paper_respond(udata, &resp, sizeof(resp));
}

/* erdma_create_qp */
static int erdma_create_qp(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata)
{
	struct erdma_uresp_create_qp resp = { .qp_id = qp->num };
	const struct ib_qp_cap *cap = &attr->cap;
	struct erdma_ureq_create_qp req;
	size_t len;
	int err;

	if (cap->max_send_wr > MAX_SEND_WR || cap->max_recv_wr > MAX_RECV_WR || cap->max_send_sge > MAX_SEND_SGE ||
	    cap->max_recv_sge > MAX_RECV_SGE || cap->max_inline_data > MAX_INLINE || !cap->max_send_wr || !cap->max_recv_wr)
		return -EINVAL;
	if (attr->srq || !attr->send_cq || !attr->recv_cq)
		return -EOPNOTSUPP;
	err = paper_request(udata, &req, sizeof(req), 0);
	if (err)
		return err;
	qp->cap = *cap;
	qp->cap.max_inline_data = MAX_INLINE;
	qp->cap.max_send_wr = resp.num_sqe = roundup_pow_of_two(cap->max_send_wr * BLOCKS_PER_WQE);
	qp->cap.max_recv_wr = resp.num_rqe = roundup_pow_of_two(cap->max_recv_wr);
	resp.rq_offset = ALIGN(resp.num_sqe * BLOCK, HW_PAGE);
	len = resp.rq_offset + (size_t)resp.num_rqe * RQE_SIZE;
	if (req.qbuf_len < len)
		return -EINVAL;
	qp->priv[QP_SQ_SIZE] = resp.num_sqe;
	qp->priv[QP_RQ_SIZE] = resp.num_rqe;
	qp->priv[QP_RQ_OFFSET] = resp.rq_offset;
	err = paper_pin(qp->ib.device, &qp->buf, req.qbuf_va, len, IB_ACCESS_LOCAL_WRITE);
	if (err)
		return err;
	err = paper_pin(qp->ib.device, &qp->db, req.db_record_va, 2 * RECORD_SIZE, 0);
	return err ?: paper_respond(udata, &resp, sizeof(resp));
}

/* erdma_modify_qp and erdma_modify_qp_internal, as far as one gets without a connection */
static int erdma_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);
	int err = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (!(mask & IB_QP_STATE))
		return 0;
	mutex_lock(&dev->lock);
	if (paper_state(qp) != IB_QPS_ERR) {
		if (attr->qp_state == IB_QPS_RTS)
			err = -EINVAL;
		else if (attr->qp_state == IB_QPS_ERR)
			qp->attr.qp_state = IB_QPS_ERR;
	}
	mutex_unlock(&dev->lock);
	if (!err)
		paper_count(dev, PAPER_MODIFIED_QPS);
	paper_wake(dev);
	return err;
}

/* erdma_query_qp */
static int erdma_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);

	mutex_lock(&dev->lock);
	attr->qp_state = attr->cur_qp_state = paper_state(qp) == IB_QPS_ERR ? IB_QPS_ERR : IB_QPS_INIT;
	mutex_unlock(&dev->lock);
	attr->cap = init->cap = qp->cap;
	attr->path_mtu = dev->port.netdev ? ib_mtu_int_to_enum(dev->port.netdev->mtu) : IB_MTU_1024;
	attr->max_rd_atomic = MAX_ORD;
	attr->max_dest_rd_atomic = MAX_ORD;
	attr->qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	return 0;
}

/* The data path: what is flushed. */

static u64 erdma_record(const struct paper_mem *mem, unsigned int i)
{
	return le64_to_cpu(READ_ONCE(((__le64 *)mem->va)[i]));
}

static int erdma_next_send(struct paper_qp *qp, struct paper_wr *wr)
{
	u16 pos = qp->priv[QP_SQ_POS];
	u64 header;

	if ((u16)FIELD_GET(RECORD_PI, erdma_record(&qp->db, 0)) == pos)
		return 0;
	smp_rmb();
	header = le64_to_cpu(READ_ONCE(*(__le64 *)(qp->buf.va + (pos & (qp->priv[QP_SQ_SIZE] - 1)) * BLOCK)));
	wr->index = pos;
	wr->vendor = FIELD_GET(SQE_OPCODE, header);
	wr->flags = header & SQE_SIGNALED ? IB_SEND_SIGNALED : 0;
	wr->opcode = IB_WR_SEND;
	wr->inline_len = 0;
	wr->nsge = 0;
	qp->priv[QP_SQ_POS] = (u16)(pos + FIELD_GET(SQE_BLOCKS, header) + 1);
	return 1;
}

static int erdma_next_recv(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr)
{
	if ((u16)FIELD_GET(RECORD_PI, erdma_record(&qp->db, 1)) == (u16)qp->rq_ci)
		return 0;
	wr->index = (u16)qp->rq_ci;
	wr->nsge = 0;
	return 1;
}

static int erdma_complete(struct paper_cq *cq, const struct paper_wc *wc)
{
	__be32 *cqe = cq->buf.va + (size_t)(cq->pi & (cq->entries - 1)) * CQE_SIZE;
	u32 syndrome = wc->status == IB_WC_WR_FLUSH_ERR ? SYNDROME_FLUSHED : SYNDROME_GENERAL;

	cqe[1] = cpu_to_be32(wc->wr->index);
	cqe[2] = cpu_to_be32(wc->qp->num);
	cqe[3] = 0;
	cqe[4] = 0;
	/* The owner's bit is the opposite of the ring's turn. */
	smp_store_release(&cqe[0], cpu_to_be32((cq->pi & cq->entries ? 0 : CQE_OWNER) | (wc->recv ? CQE_RECEIVE : 0) |
					       FIELD_PREP(CQE_OPCODE, wc->recv ? OP_RECEIVE : wc->wr->vendor) | syndrome));
	return 0;
}

static void erdma_poll_arm(struct paper_cq *cq)
{
	u64 word = erdma_record(&cq->db, 0);
	unsigned long index = FIELD_GET(ARM_INDEX, word);
	u32 behind;

	if (!(word & ARM_SET) || index == cq->priv[CQ_ARMED])
		return;
	cq->priv[CQ_ARMED] = index;
	behind = (cq->pi - (u32)FIELD_GET(ARM_CI, word)) & ARM_CI;
	paper_arm(cq, word & ARM_SOLICITED ? PAPER_ARM_SOLICITED : PAPER_ARM_NEXT, cq->pi - behind);
}

static const struct ib_device_ops erdma_ops = {
	.modify_qp = erdma_modify_qp,
	.query_qp = erdma_query_qp,
};

const struct paper_vendor paper_erdma = {
	.name = "erdma",
	.device = "erdma_%d",
	.driver_id = RDMA_DRIVER_ERDMA,
	.abi = ERDMA_ABI_VERSION,
	.pci_vendor = 0x1ded,
	.pci_device = 0x107f,
	.bus_driver = "erdma",
	.link = IB_LINK_LAYER_ETHERNET,
	.iwarp = true,
	.vectors = 31,
	.qp_types = BIT(IB_QPT_RC),
	/* erdma_query_device */
	.limits = {
		.fw_ver = 1 << 16,
		.max_mr_size = 1ULL << 36,
		.page_size_cap = 0x7ffff000,
		.max_qp = MAX_QP - 1,
		.max_qp_wr = MAX_RECV_WR,
		.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS,
		.max_send_sge = MAX_SEND_SGE,
		.max_recv_sge = MAX_RECV_SGE,
		.max_sge_rd = 1,
		.max_cq = 2 * MAX_QP - 1,
		.max_cqe = MAX_CQE,
		.max_mr = 2 * MAX_QP,
		.max_pd = 128 * 1024,
		.max_qp_rd_atom = MAX_ORD,
		.max_qp_init_rd_atom = MAX_ORD,
		.max_res_rd_atom = MAX_QP * MAX_ORD,
		.max_fast_reg_page_list_len = 512,
	},
	.port = {
		.gid_tbl_len = 1,
		.port_cap_flags = IB_PORT_CM_SUP | IB_PORT_DEVICE_MGMT_SUP,
		.max_msg_sz = ~0u,
	},
	.ops = &erdma_ops,
	.alloc_ucontext = erdma_alloc_ucontext,
	.doorbell_pages = 3, /* what is stored there is in the records, too */
	.create_cq = erdma_create_cq,
	.create_qp = erdma_create_qp,
	.next_send = erdma_next_send,
	.next_recv = erdma_next_recv,
	.complete = erdma_complete,
	.poll_arm = erdma_poll_arm,
};
