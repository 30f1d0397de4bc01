// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The data path of the paper adapters: one thread for each device reads what was
 * posted, delivers it to queue pairs of the same device, and writes completions.
 * Whatever would leave the device is lost, as on a port without a cable.
 *
 * The rules are those of the InfiniBand architecture (volume 1, chapters 9 and 11):
 * which side learns of which error, what is flushed, when an event is raised.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "paper.h"

/* How many requests of one queue pair are handled before the others have their turn. */
#define TURN 64
/* What a peer that does not answer, or has no receive, is given, for each retry. */
#define RETRY_WAIT (HZ / 50 + 1)
/* A device whose queues were idle for so many looks is looked at less often. */
#define IDLE_LOOKS 200
/* The longest message that there is. */
#define MAX_MESSAGE BIT_ULL(31)

void paper_wake(struct paper_dev *dev)
{
	wake_up(&dev->wake);
}

/* Events. */

void paper_arm(struct paper_cq *cq, enum paper_arm arm, u32 ci)
{
	/* An arming for any completion is not taken back by one for solicited ones. */
	if (cq->arm != PAPER_ARM_NEXT || arm == PAPER_ARM_NEXT)
		cq->arm = arm;
	cq->arm_ci = ci;
	paper_count(to_paper_dev(cq->ib.device), PAPER_ARMED);
}

static void raise_if_due(struct paper_dev *dev, struct paper_cq *cq)
{
	u32 pi;

	if (dev->vendor->poll_arm)
		dev->vendor->poll_arm(cq);
	if (cq->arm == PAPER_UNARMED)
		return;
	pi = cq->arm == PAPER_ARM_SOLICITED ? cq->solicited_pi : cq->pi;
	/* A program arms, and then takes what the last event told of: not another one for that. */
	if ((s32)(pi - cq->arm_ci) <= 0 || (s32)(pi - cq->told_pi) <= 0)
		return;
	cq->arm = PAPER_UNARMED;
	cq->told_pi = cq->pi;
	cq->events++;
	paper_count(dev, PAPER_EVENTS);
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static void qp_event(struct paper_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->ib.device, .element.qp = &qp->ib, .event = type };

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

static void cq_overflowed(struct paper_cq *cq)
{
	struct ib_event event = { .device = cq->ib.device, .element.cq = &cq->ib, .event = IB_EVENT_CQ_ERR };

	if (cq->dead)
		return;
	cq->dead = true;
	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

static void raise_srq_limit(struct paper_dev *dev, struct paper_srq *srq)
{
	struct ib_event event = { .device = &dev->ib, .element.srq = &srq->ib, .event = IB_EVENT_SRQ_LIMIT_REACHED };

	if (!srq->attr.srq_limit || !dev->vendor->srq_avail || dev->vendor->srq_avail(srq) >= srq->attr.srq_limit)
		return;
	srq->attr.srq_limit = 0;
	if (srq->ib.event_handler)
		srq->ib.event_handler(&event, srq->ib.srq_context);
}

static void write_completion(struct paper_dev *dev, struct paper_cq *cq, struct paper_wc *wc)
{
	int err;

	if (!cq || cq->dead)
		return;
	err = dev->vendor->complete(cq, wc);
	if (err < 0)
		cq_overflowed(cq);
	if (err)
		return;
	cq->pi++;
	if (wc->solicited || wc->status != IB_WC_SUCCESS)
		cq->solicited_pi = cq->pi;
	paper_count(dev, PAPER_COMPLETIONS);
}

/* Memory. */

/* region returns where the bytes of a key are, or NULL if they may not be used so. */
static void *region(struct paper_dev *dev, struct ib_pd *pd, u32 key, u64 addr, u64 len, int access)
{
	struct paper_mr *mr = xa_load(&dev->mrs, key >> 8);

	if (!mr || mr->ib.lkey != key || mr->ib.pd != pd || (mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || len > mr->mem.len || addr - mr->iova > mr->mem.len - len)
		return NULL;
	return mr->mem.va + (addr - mr->iova);
}

/* A place in the elements of a request, or in its inline data. */
struct place {
	struct paper_dev *dev;
	struct ib_pd *pd;
	const struct paper_wr *wr;
	int access;
	unsigned int element;
	u64 offset;
};

static u64 length(const struct paper_wr *wr)
{
	u64 sum = 0;
	unsigned int i;

	if (wr->flags & IB_SEND_INLINE)
		return wr->inline_len;
	for (i = 0; i < wr->nsge; i++)
		sum += wr->sge[i].len;
	return sum;
}

/* next returns the next bytes in one piece, at most *len, and sets *len. */
static void *next(struct place *p, u64 *len)
{
	const struct paper_sge *sge;
	void *at;

	if (p->wr->flags & IB_SEND_INLINE) {
		if (p->offset >= p->wr->inline_len)
			return NULL;
		at = (void *)p->wr->inline_data + p->offset;
		*len = min_t(u64, *len, p->wr->inline_len - p->offset);
		p->offset += *len;
		return at;
	}
	while (p->element < p->wr->nsge && p->offset == p->wr->sge[p->element].len) {
		p->element++;
		p->offset = 0;
	}
	if (p->element >= p->wr->nsge)
		return NULL;
	sge = &p->wr->sge[p->element];
	*len = min_t(u64, *len, sge->len - p->offset);
	at = region(p->dev, p->pd, sge->lkey, sge->addr + p->offset, *len, p->access);
	p->offset += *len;
	return at;
}

enum copied { COPIED, BAD_FROM, BAD_TO };

static enum copied copy_bytes(struct place *to, const void *from, u64 len)
{
	while (len) {
		u64 n = len;
		void *at = next(to, &n);

		if (!at)
			return BAD_TO;
		memmove(at, from, n);
		from += n;
		len -= n;
	}
	return COPIED;
}

static enum copied copy(struct place *to, struct place *from, u64 len)
{
	enum copied copied = COPIED;

	while (len && copied == COPIED) {
		u64 n = len;
		const void *at = next(from, &n);

		if (!at)
			return BAD_FROM;
		copied = copy_bytes(to, at, n);
		len -= n;
	}
	return copied;
}

/* Completions of queue pairs. */

static const enum ib_wc_opcode wc_opcodes[] = {
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
	[IB_WR_SEND_WITH_INV] = IB_WC_SEND,
	[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
};

const u8 paper_syndromes[IB_WC_GENERAL_ERR] = {
	[IB_WC_LOC_LEN_ERR] = 0x01,
	[IB_WC_LOC_QP_OP_ERR] = 0x02,
	[IB_WC_LOC_PROT_ERR] = 0x04,
	[IB_WC_WR_FLUSH_ERR] = 0x05,
	[IB_WC_MW_BIND_ERR] = 0x06,
	[IB_WC_BAD_RESP_ERR] = 0x10,
	[IB_WC_LOC_ACCESS_ERR] = 0x11,
	[IB_WC_REM_INV_REQ_ERR] = 0x12,
	[IB_WC_REM_ACCESS_ERR] = 0x13,
	[IB_WC_REM_OP_ERR] = 0x14,
	[IB_WC_RETRY_EXC_ERR] = 0x15,
	[IB_WC_RNR_RETRY_EXC_ERR] = 0x16,
	[IB_WC_REM_ABORT_ERR] = 0x22,
};

const u8 paper_requester_errors[IB_WC_GENERAL_ERR] = {
	[IB_WC_BAD_RESP_ERR] = 1,
	[IB_WC_LOC_LEN_ERR] = 2,
	[IB_WC_LOC_QP_OP_ERR] = 3,
	[IB_WC_LOC_PROT_ERR] = 4,
	[IB_WC_REM_INV_REQ_ERR] = 6,
	[IB_WC_REM_ACCESS_ERR] = 7,
	[IB_WC_REM_OP_ERR] = 8,
	[IB_WC_RNR_RETRY_EXC_ERR] = 9,
	[IB_WC_RETRY_EXC_ERR] = 10,
};

static void enter_error(struct paper_qp *qp)
{
	bool connected = qp->type == IB_QPT_RC;

	/* A datagram pair stops sending, and goes on to receive; to one of reliable
	 * datagrams an error is that of one request. */
	if (qp->type != IB_QPT_DRIVER)
		qp->attr.qp_state = connected ? IB_QPS_ERR : IB_QPS_SQE;
}

/* What became of a send that was tried. */
enum outcome { DONE, LATER };

static enum outcome end_send(struct paper_dev *dev, struct paper_qp *qp, enum ib_wc_status status)
{
	const struct paper_wr *wr = qp->pending;
	struct paper_wc wc = {
		.qp = qp,
		.wr = wr,
		.status = status,
		.opcode = wr->opcode < ARRAY_SIZE(wc_opcodes) ? wc_opcodes[wr->opcode] : IB_WC_SEND,
		.byte_len = length(wr),
	};

	qp->busy = false;
	if (status != IB_WC_SUCCESS && status != IB_WC_WR_FLUSH_ERR)
		enter_error(qp);
	if (status != IB_WC_SUCCESS || qp->sig_all || wr->flags & IB_SEND_SIGNALED)
		write_completion(dev, qp->send_cq, &wc);
	return DONE;
}

/* count_send counts what a request asks for. */
static void count_send(struct paper_dev *dev, const struct paper_wr *wr)
{
	paper_count(dev, PAPER_SENDS);
	if (wr->opcode == IB_WR_RDMA_WRITE)
		paper_count(dev, PAPER_WRITES);
	if (wr->opcode == IB_WR_RDMA_READ)
		paper_count(dev, PAPER_READS);
	if (wr->flags & IB_SEND_INLINE)
		paper_count(dev, PAPER_INLINE);
	if (wr->flags & IB_SEND_SIGNALED)
		paper_count(dev, PAPER_SIGNALLED);
	atomic64_add(length(wr), &dev->counts[PAPER_BYTES]);
}

/* take_send takes the next send of a queue pair, if it has one. */
static int take_send(struct paper_dev *dev, struct paper_qp *qp)
{
	int got = dev->vendor->next_send(qp, qp->pending);

	if (got) {
		qp->busy = true;
		qp->retry_at = 0;
		qp->sq_ci++;
		count_send(dev, qp->pending);
	}
	return got;
}

/* take_receive takes the next receive of a queue pair, if it has one. */
static bool take_receive(struct paper_dev *dev, struct paper_qp *qp, struct paper_wr *wr)
{
	int got = dev->vendor->next_recv(qp, qp->srq, wr);

	if (got && qp->srq)
		qp->srq->taken++;
	else if (got)
		qp->rq_ci++;
	if (got)
		paper_count(dev, PAPER_RECEIVES);
	return got;
}

static void end_receive(struct paper_dev *dev, struct paper_qp *qp, const struct paper_wr *wr, struct paper_wc *wc)
{
	wc->qp = qp;
	wc->srq = qp->srq;
	wc->wr = wr;
	wc->recv = true;
	write_completion(dev, qp->recv_cq, wc);
}

/* Finding the other side. */

static bool is_own_gid(struct paper_dev *dev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;
	union ib_gid own;
	int type;

	if (dev->port.link != IB_LINK_LAYER_ETHERNET)
		return !dev->ib.ops.query_gid(&dev->ib, 1, 0, &own) && !memcmp(&own, gid, sizeof(own));
	for (type = IB_GID_TYPE_IB; type <= IB_GID_TYPE_ROCE_UDP_ENCAP; type++) {
		attr = rdma_find_gid(&dev->ib, gid, type, NULL);
		if (!IS_ERR(attr)) {
			rdma_put_gid_attr(attr);
			return true;
		}
	}
	return false;
}

static bool is_own_address(struct paper_dev *dev, bool global, const union ib_gid *gid, u16 lid)
{
	if (!dev->port.active)
		return false;
	if (global)
		return is_own_gid(dev, gid);
	return dev->port.link == IB_LINK_LAYER_INFINIBAND && lid == dev->port.lid;
}

/* Two limited members of a partition do not talk to each other. */
static bool partition_allows(struct paper_dev *dev, const struct paper_qp *a, const struct paper_qp *b)
{
	u16 x, y;

	if (dev->port.link != IB_LINK_LAYER_INFINIBAND)
		return true;
	x = dev->port.pkeys[a->attr.pkey_index & 1];
	y = dev->port.pkeys[b->attr.pkey_index & 1];
	return (x & 0x7fff) == (y & 0x7fff) && (x & 0x7fff) && (x | y) & 0x8000;
}

static bool can_receive(const struct paper_qp *qp)
{
	return paper_state(qp) == IB_QPS_RTR || paper_state(qp) == IB_QPS_RTS || paper_state(qp) == IB_QPS_SQD ||
	       paper_state(qp) == IB_QPS_SQE;
}

/* peer_of returns the connected queue pair at the other end, if it can be reached. */
static struct paper_qp *peer_of(struct paper_dev *dev, struct paper_qp *qp)
{
	const struct rdma_ah_attr *ah = &qp->attr.ah_attr;
	bool global = rdma_ah_get_ah_flags(ah) & IB_AH_GRH;
	u16 lid = ah->type == RDMA_AH_ATTR_TYPE_IB ? ah->ib.dlid : 0;
	struct paper_qp *peer = paper_find_qp(dev, qp->attr.dest_qp_num);

	if (!peer || peer->type != qp->type || !can_receive(peer) || peer->attr.dest_qp_num != qp->num)
		return NULL;
	return is_own_address(dev, global, &ah->grh.dgid, lid) && partition_allows(dev, qp, peer) ? peer : NULL;
}

/* named_peer returns the queue pair that a reliable datagram goes to, if there is one. */
static struct paper_qp *named_peer(struct paper_dev *dev, struct paper_qp *qp)
{
	const struct paper_wr *wr = qp->pending;
	struct paper_qp *peer = paper_find_qp(dev, wr->to.qpn);

	if (!peer || peer->type != qp->type || !can_receive(peer) || peer->attr.qkey != wr->to.qkey)
		return NULL;
	return is_own_address(dev, wr->to.global, &wr->to.gid, wr->to.lid) ? peer : NULL;
}

/* Delivery. */

/* gave_up tells whether a request that cannot go on has been tried long enough. */
static bool gave_up(struct paper_qp *qp, unsigned int retries)
{
	if (!qp->retry_at)
		qp->retry_at = (jiffies + RETRY_WAIT * (retries + 1)) ?: 1;
	return time_after(jiffies, qp->retry_at);
}

/* deliver copies the pending message of a queue pair into a receive of the peer,
 * behind a header, if there is one. */
static enum copied deliver(struct paper_dev *dev, struct paper_qp *qp, struct paper_qp *peer, const void *header, size_t header_len)
{
	struct place from = { .dev = dev, .pd = qp->ib.pd, .wr = qp->pending };
	struct place to = {
		.dev = dev,
		.pd = peer->srq ? peer->srq->ib.pd : peer->ib.pd,
		.wr = &dev->receive,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	enum copied copied = copy_bytes(&to, header, header_len);

	return copied == COPIED ? copy(&to, &from, length(qp->pending)) : copied;
}

/* fail_responder has the peer learn of what it did wrong, by the completion of a
 * receive or by an event, and enter the error state. */
static void fail_responder(struct paper_dev *dev, struct paper_qp *peer, bool receiving, enum ib_wc_status status)
{
	struct paper_wc wc = { .status = status, .opcode = IB_WC_RECV };

	if (receiving)
		end_receive(dev, peer, &dev->receive, &wc);
	else
		qp_event(peer, status == IB_WC_REM_ACCESS_ERR ? IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_REQ_ERR);
	if (peer->type == IB_QPT_RC)
		peer->attr.qp_state = IB_QPS_ERR;
}

/* connected_send sends to the peer of a queue pair that is no UD. */
static enum outcome connected_send(struct paper_dev *dev, struct paper_qp *qp, struct paper_qp *peer)
{
	const struct paper_wr *wr = qp->pending;
	bool with_imm = wr->opcode == IB_WR_SEND_WITH_IMM || wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	bool write = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct paper_wc wc = {
		.opcode = write ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.flags = with_imm ? IB_WC_WITH_IMM : wr->opcode == IB_WR_SEND_WITH_INV ? IB_WC_WITH_INVALIDATE : 0,
		.imm = wr->opcode == IB_WR_SEND_WITH_INV ? cpu_to_be32(wr->invalidate_rkey) : wr->imm,
		.solicited = wr->flags & IB_SEND_SOLICITED,
		.byte_len = length(wr),
		.src_qp = qp->num,
		.slid = dev->port.lid,
	};
	bool reliable = qp->type != IB_QPT_UC;

	if (!take_receive(dev, peer, &dev->receive)) {
		if (!reliable)
			return end_send(dev, qp, IB_WC_SUCCESS); /* the message is lost */
		if (qp->attr.rnr_retry == 7 || !gave_up(qp, qp->attr.rnr_retry))
			return LATER;
		return end_send(dev, qp, IB_WC_RNR_RETRY_EXC_ERR);
	}
	if (paper_state(peer) == IB_QPS_RTR && peer->type != IB_QPT_DRIVER && !peer->established) {
		peer->established = true;
		qp_event(peer, IB_EVENT_COMM_EST);
	}
	if (!write && length(wr) > length(&dev->receive)) {
		fail_responder(dev, peer, true, IB_WC_LOC_LEN_ERR);
		return end_send(dev, qp, reliable ? IB_WC_REM_INV_REQ_ERR : IB_WC_SUCCESS);
	}
	switch (write ? COPIED : deliver(dev, qp, peer, NULL, 0)) {
	case BAD_FROM:
		wc.status = IB_WC_WR_FLUSH_ERR; /* of a receive that was taken, and whose sender failed */
		if (peer->type == IB_QPT_RC)
			peer->attr.qp_state = IB_QPS_ERR;
		end_receive(dev, peer, &dev->receive, &wc);
		return end_send(dev, qp, IB_WC_LOC_PROT_ERR);
	case BAD_TO:
		fail_responder(dev, peer, true, IB_WC_LOC_PROT_ERR);
		return end_send(dev, qp, reliable ? IB_WC_REM_OP_ERR : IB_WC_SUCCESS);
	case COPIED:
		break;
	}
	end_receive(dev, peer, &dev->receive, &wc);
	return end_send(dev, qp, IB_WC_SUCCESS);
}

/* remote does what touches memory of the peer without its doing: RDMA and atomics. */
static enum outcome remote(struct paper_dev *dev, struct paper_qp *qp, struct paper_qp *peer)
{
	const struct paper_wr *wr = qp->pending;
	bool reliable = qp->type != IB_QPT_UC;
	bool read = wr->opcode == IB_WR_RDMA_READ;
	bool atomic = wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
	int access = read ? IB_ACCESS_REMOTE_READ : atomic ? IB_ACCESS_REMOTE_ATOMIC : IB_ACCESS_REMOTE_WRITE;
	struct place here = { .dev = dev, .pd = qp->ib.pd, .wr = wr, .access = read || atomic ? IB_ACCESS_LOCAL_WRITE : 0 };
	u64 len = atomic ? 8 : length(wr), done, old;
	enum ib_wc_status status = IB_WC_SUCCESS;
	u8 *there = NULL;

	/* A pair of reliable datagrams has no flags of its own. */
	if ((qp->type == IB_QPT_DRIVER || (peer->attr.qp_access_flags & access) == access) && !(atomic && wr->remote_addr & 7))
		there = region(dev, peer->ib.pd, wr->rkey, wr->remote_addr, len, access);
	if (!there && len) {
		if (qp->type == IB_QPT_RC)
			fail_responder(dev, peer, false, IB_WC_REM_ACCESS_ERR);
		return end_send(dev, qp, reliable ? IB_WC_REM_ACCESS_ERR : IB_WC_SUCCESS);
	}
	if (atomic) {
		memcpy(&old, there, 8);
		if (copy_bytes(&here, &old, 8) != COPIED)
			status = IB_WC_LOC_PROT_ERR;
		else if (wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
			old += wr->compare_add;
		else if (old == wr->compare_add)
			old = wr->swap;
		if (status == IB_WC_SUCCESS)
			memcpy(there, &old, 8);
	} else {
		for (done = 0; done < len && status == IB_WC_SUCCESS;) {
			u64 n = len - done;
			void *at = next(&here, &n);

			if (!at)
				status = IB_WC_LOC_PROT_ERR;
			else if (read)
				memmove(at, there + done, n);
			else
				memmove(there + done, at, n);
			done += n;
		}
	}
	if (status == IB_WC_SUCCESS && wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		return connected_send(dev, qp, peer);
	return end_send(dev, qp, status);
}

/* datagram delivers to one queue pair, if it takes the message. */
static void datagram(struct paper_dev *dev, struct paper_qp *qp, struct paper_qp *peer)
{
	const struct paper_wr *wr = qp->pending;
	bool roce = dev->port.link == IB_LINK_LAYER_ETHERNET;
	struct paper_wc wc = {
		.opcode = IB_WC_RECV,
		.flags = (wr->opcode == IB_WR_SEND_WITH_IMM ? IB_WC_WITH_IMM : 0) | (wr->to.global || roce ? IB_WC_GRH : 0),
		.imm = wr->imm,
		.solicited = wr->flags & IB_SEND_SOLICITED,
		.byte_len = length(wr) + sizeof(struct ib_grh),
		.src_qp = qp->num,
		.slid = dev->port.lid,
	};
	u32 qkey = wr->to.qkey & BIT(31) ? qp->attr.qkey : wr->to.qkey;
	struct ib_grh grh = { .next_hdr = 0x1b, .hop_limit = 64, .dgid = wr->to.gid, .sgid = wr->to.gid };

	if (peer->type != qp->type || !can_receive(peer) || peer->attr.qkey != qkey || !partition_allows(dev, qp, peer))
		return;
	if (!take_receive(dev, peer, &dev->receive))
		return;
	if (wc.byte_len > length(&dev->receive))
		wc.status = IB_WC_LOC_LEN_ERR;
	else if (deliver(dev, qp, peer, &grh, sizeof(grh)) != COPIED)
		wc.status = IB_WC_LOC_PROT_ERR;
	if (wc.status != IB_WC_SUCCESS)
		peer->attr.qp_state = IB_QPS_ERR;
	end_receive(dev, peer, &dev->receive, &wc);
}

/* readable tells whether the sender may read what it sends. */
static bool readable(struct paper_dev *dev, struct paper_qp *qp)
{
	const struct paper_wr *wr = qp->pending;
	unsigned int i;

	if (wr->flags & IB_SEND_INLINE)
		return true;
	for (i = 0; i < wr->nsge; i++)
		if (wr->sge[i].len && !region(dev, qp->ib.pd, wr->sge[i].lkey, wr->sge[i].addr, wr->sge[i].len, 0))
			return false;
	return true;
}

/* sends_such tells whether a queue pair of this type has such a request. */
static bool sends_such(const struct paper_qp *qp, const struct paper_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return true;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		return qp->type == IB_QPT_RC || qp->type == IB_QPT_UC || qp->type == IB_QPT_DRIVER;
	default: /* what brings data has nowhere to put it in line */
		return (qp->type == IB_QPT_RC || qp->type == IB_QPT_DRIVER) && !(wr->flags & IB_SEND_INLINE);
	}
}

static enum outcome datagram_send(struct paper_dev *dev, struct paper_qp *qp)
{
	const struct paper_wr *wr = qp->pending;
	struct paper_qp *peer;

	if (!readable(dev, qp))
		return end_send(dev, qp, IB_WC_LOC_PROT_ERR);
	peer = paper_find_qp(dev, wr->to.qpn);
	if (peer && is_own_address(dev, wr->to.global, &wr->to.gid, wr->to.lid))
		datagram(dev, qp, peer);
	return end_send(dev, qp, IB_WC_SUCCESS);
}

static enum outcome send(struct paper_dev *dev, struct paper_qp *qp)
{
	const struct paper_wr *wr = qp->pending;
	struct paper_qp *peer;

	if (!sends_such(qp, wr))
		return end_send(dev, qp, IB_WC_LOC_QP_OP_ERR);
	if (length(wr) > MAX_MESSAGE)
		return end_send(dev, qp, IB_WC_LOC_LEN_ERR);
	if (qp->type != IB_QPT_RC && qp->type != IB_QPT_UC && qp->type != IB_QPT_DRIVER)
		return datagram_send(dev, qp);
	if (wr->opcode == IB_WR_LOCAL_INV)
		return end_send(dev, qp, IB_WC_SUCCESS);
	if (!readable(dev, qp))
		return end_send(dev, qp, IB_WC_LOC_PROT_ERR);
	peer = qp->type == IB_QPT_DRIVER ? named_peer(dev, qp) : peer_of(dev, qp);
	if (!peer) {
		if (qp->type == IB_QPT_DRIVER && is_own_address(dev, wr->to.global, &wr->to.gid, wr->to.lid))
			return end_send(dev, qp, IB_WC_REM_INV_RD_REQ_ERR); /* the device answers that it has none */
		if (qp->type == IB_QPT_UC)
			return end_send(dev, qp, IB_WC_SUCCESS);
		if (!gave_up(qp, qp->attr.retry_cnt))
			return LATER;
		return end_send(dev, qp, IB_WC_RETRY_EXC_ERR);
	}
	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return connected_send(dev, qp, peer);
	default:
		return remote(dev, qp, peer);
	}
}

/* The queues of one queue pair. */

static void flush(struct paper_dev *dev, struct paper_qp *qp)
{
	struct paper_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV };
	unsigned int i;

	for (i = 0; i < TURN; i++) {
		if (!qp->busy && !take_send(dev, qp))
			break;
		end_send(dev, qp, IB_WC_WR_FLUSH_ERR);
	}
	if (qp->srq) /* what is in there is everybody's */
		return;
	for (i = 0; paper_state(qp) == IB_QPS_ERR && i < TURN && take_receive(dev, qp, &dev->receive); i++)
		end_receive(dev, qp, &dev->receive, &wc);
}

/* serve_qp handles what was posted, and tells whether there was anything. */
static bool serve_qp(struct paper_dev *dev, struct paper_qp *qp)
{
	bool any = false;
	unsigned int i;
	int got;

	if (paper_state(qp) == IB_QPS_ERR && !qp->flushed && qp->srq) {
		qp->flushed = true;
		qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	}
	if (paper_state(qp) == IB_QPS_ERR || paper_state(qp) == IB_QPS_SQE) {
		flush(dev, qp);
		return false;
	}
	for (i = 0; i < TURN && paper_state(qp) == IB_QPS_RTS; i++) {
		if (!qp->busy) {
			got = take_send(dev, qp);
			if (!got)
				break;
			if (got < 0) {
				end_send(dev, qp, IB_WC_LOC_QP_OP_ERR);
				break;
			}
		}
		any = true;
		if (send(dev, qp) == LATER)
			break;
		cond_resched(); /* it may have copied much */
	}
	return any;
}

static bool data_pass(struct paper_dev *dev)
{
	struct paper_srq *srq;
	struct paper_qp *qp;
	struct paper_cq *cq;
	bool any = false;

	mutex_lock(&dev->lock);
	list_for_each_entry (qp, &dev->qp_list, entry)
		any |= serve_qp(dev, qp);
	list_for_each_entry (cq, &dev->cq_list, entry)
		raise_if_due(dev, cq);
	list_for_each_entry (srq, &dev->srq_list, entry)
		raise_srq_limit(dev, srq);
	mutex_unlock(&dev->lock);
	return any;
}

/* A queue without a pair has events yet: one is armed that holds completions, or has a limit. */
static bool has_queues(struct paper_dev *dev)
{
	return dev->vendor->next_send && !(list_empty(&dev->qp_list) && list_empty(&dev->cq_list) && list_empty(&dev->srq_list));
}

int paper_data_thread(void *data)
{
	struct paper_dev *dev = data;
	unsigned int idle = 0;

	while (!kthread_should_stop()) {
		if (!has_queues(dev)) {
			wait_event_interruptible(dev->wake, kthread_should_stop() || has_queues(dev));
			idle = 0;
			continue;
		}
		idle = data_pass(dev) ? 0 : idle + 1;
		if (idle < IDLE_LOOKS)
			usleep_range(50, 100);
		else
			usleep_range(400, 800);
	}
	return 0;
}
