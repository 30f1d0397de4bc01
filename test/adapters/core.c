// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The core of the paper adapters: the module, its devices and ports, and the objects
 * that the kernel's RDMA core asks for. See paper.h.
 */
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>

#include "paper.h"

MODULE_DESCRIPTION("RDMA devices that are real to the RDMA core and to the vendors' libraries");
MODULE_LICENSE("GPL v2");

static char *adapters = "";
module_param(adapters, charp, 0444);
MODULE_PARM_DESC(adapters, "devices to make: VENDOR[-OPTION...][,...]; options: ib, grh, limited, down");

static char *netdev = "";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network device of the RoCE and iWARP ports");

static const struct paper_vendor *const vendors[] = {
	&paper_bnxt_re,
	&paper_efa,
	&paper_efa_eq,
	&paper_erdma,
	&paper_hns,
	&paper_irdma,
	&paper_mana,
	&paper_mlx5,
	&paper_qedr,
};

/* Libraries give small keys a meaning: libmlx5's 0x100 is that of no region. */
#define FIRST_KEY 0x1000

static LIST_HEAD(devices);
static DEFINE_MUTEX(devices_lock);
static struct dentry *debugfs;

/* Memory of the process. */

int paper_pin(struct ib_device *ib, struct paper_mem *mem, u64 addr, size_t len, int access)
{
	struct sg_page_iter iter;
	struct page **pages;
	size_t n = 0, count;
	int err = -ENOMEM;

	memset(mem, 0, sizeof(*mem));
	if (!len || addr + len < addr)
		return -EINVAL;
	mem->umem = ib_umem_get(ib, addr, len, access);
	if (IS_ERR(mem->umem)) {
		err = PTR_ERR(mem->umem);
		mem->umem = NULL;
		return err;
	}
	count = ib_umem_num_pages(mem->umem);
	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		goto release;
	for_each_sgtable_page (&mem->umem->sgt_append.sgt, &iter, 0)
		if (n < count)
			pages[n++] = sg_page_iter_page(&iter);
	mem->map = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!mem->map)
		goto release;
	mem->va = mem->map + offset_in_page(addr);
	mem->addr = addr;
	mem->len = len;
	return 0;

release:
	ib_umem_release(mem->umem);
	memset(mem, 0, sizeof(*mem));
	return err;
}

void paper_unpin(struct paper_mem *mem)
{
	vunmap(mem->map);
	ib_umem_release(mem->umem);
	memset(mem, 0, sizeof(*mem));
}

int paper_respond(struct ib_udata *udata, void *resp, size_t len)
{
	return udata && udata->outlen ? ib_copy_to_udata(udata, resp, min(len, udata->outlen)) : 0;
}

int paper_request(struct ib_udata *udata, void *req, size_t len, size_t least)
{
	memset(req, 0, len);
	if (!udata || udata->inlen < least)
		return -EINVAL;
	return ib_copy_from_udata(req, udata, min(len, udata->inlen));
}

int paper_mmap_ignored(struct paper_ucontext *ctx, struct vm_area_struct *vma)
{
	struct paper_dev *dev = to_paper_dev(ctx->ib.device);
	unsigned long addr;
	int err = 0;

	for (addr = vma->vm_start; addr < vma->vm_end && !err; addr += PAGE_SIZE)
		err = vm_insert_page(vma, addr, dev->page);
	return err;
}

/* number gives an object a number of its own, no higher than last. */
static int number(struct xarray *objects, u32 *num, void *object, u32 first, u32 last)
{
	int err = xa_alloc(objects, num, object, XA_LIMIT(first, last), GFP_KERNEL);

	return err == -EBUSY ? -ENOMEM : err;
}

/* The device and its port. */

static int paper_query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib);

	*attr = dev->vendor->limits;
	attr->sys_image_guid = ib->node_guid;
	attr->vendor_id = attr->vendor_id ?: dev->vendor->pci_vendor;
	attr->vendor_part_id = attr->vendor_part_id ?: dev->vendor->pci_device;
	attr->max_pkeys = attr->max_pkeys ?: 1;
	return dev->vendor->query_device ? dev->vendor->query_device(dev, attr, udata) : 0;
}

static int paper_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct paper_dev *dev = to_paper_dev(ib);
	bool up = dev->port.active;

	*attr = dev->vendor->port;
	if (dev->port.netdev)
		up = up && netif_running(dev->port.netdev) && netif_carrier_ok(dev->port.netdev);
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = attr->max_mtu ?: IB_MTU_4096;
	attr->active_mtu = attr->active_mtu ?: attr->max_mtu;
	if (dev->port.netdev && !dev->vendor->port.active_mtu)
		attr->active_mtu = ib_mtu_int_to_enum(min_t(int, dev->port.netdev->mtu, 4096));
	attr->max_msg_sz = attr->max_msg_sz ?: 1U << 30;
	attr->gid_tbl_len = attr->gid_tbl_len ?: 16;
	attr->pkey_tbl_len = dev->port.link == IB_LINK_LAYER_INFINIBAND ? ARRAY_SIZE(dev->port.pkeys) : 1;
	attr->max_vl_num = attr->max_vl_num ?: 1;
	attr->active_width = attr->active_width ?: IB_WIDTH_4X;
	attr->active_speed = attr->active_speed ?: IB_SPEED_EDR;
	attr->lid = dev->port.lid ?: attr->lid;
	attr->sm_lid = dev->port.lid ? 1 : 0;
	attr->ip_gids = dev->port.link == IB_LINK_LAYER_ETHERNET;
	return 0;
}

static int paper_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	struct paper_dev *dev = to_paper_dev(ib);
	struct ib_port_attr attr = {};

	/* Without RDMA_CORE_CAP_IB_MAD: it would want a QP1 of the kernel's own. */
	if (dev->vendor->iwarp)
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IWARP;
	else if (dev->port.link == IB_LINK_LAYER_INFINIBAND)
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	else if (dev->port.link == IB_LINK_LAYER_ETHERNET)
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_PROT_ROCE | RDMA_CORE_CAP_ETH_AH;
	if (dev->port.grh_required)
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_GRH_REQUIRED;
	paper_query_port(ib, port, &attr);
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	return 0;
}

static enum rdma_link_layer paper_link_layer(struct ib_device *ib, u32 port)
{
	return to_paper_dev(ib)->port.link;
}

static int paper_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	struct paper_dev *dev = to_paper_dev(ib);

	if (index >= ARRAY_SIZE(dev->port.pkeys))
		return -EINVAL;
	*pkey = dev->port.pkeys[index];
	return 0;
}

/* Only ports without a GID table of the core's ask; it has one entry. */
static int paper_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index)
		return 0;
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = ib->node_guid;
	return 0;
}

static int paper_add_gid(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static void paper_fw_str(struct ib_device *ib, char *str)
{
	u64 v = to_paper_dev(ib)->vendor->limits.fw_ver;

	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%04u", (u32)(v >> 32) & 0xffff, (u32)(v >> 16) & 0xffff, (u32)v & 0xffff);
}

/* Contexts, protection domains, address handles, regions. */

static int paper_alloc_ucontext(struct ib_ucontext *ib, struct ib_udata *udata)
{
	struct paper_ucontext *ctx = to_paper_ucontext(ib);

	INIT_LIST_HEAD(&ctx->traps);
	return to_paper_dev(ib->device)->vendor->alloc_ucontext(ctx, udata);
}

void paper_dealloc_ucontext(struct ib_ucontext *ib)
{
	paper_forget_traps(to_paper_ucontext(ib));
}

/* What a process has mapped is an ordinary page, or traps that paper_dealloc_ucontext
 * disarms: nothing has to be taken from it when the device goes. */
static void paper_disassociate(struct ib_ucontext *ib)
{
}

static int paper_mmap(struct ib_ucontext *ib, struct vm_area_struct *vma)
{
	const struct paper_vendor *vendor = to_paper_dev(ib->device)->vendor;
	struct paper_ucontext *ctx = to_paper_ucontext(ib);

	if (vendor->mmap)
		return vendor->mmap(ctx, vma);
	if (vma->vm_pgoff >= vendor->doorbell_pages || vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	return vendor->stored ? paper_mmap_trapped(ctx, vma, vendor->stored, 0) : paper_mmap_ignored(ctx, vma);
}

static struct paper_ucontext *context_of(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct paper_ucontext, ib);
}

static int paper_alloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_pd *pd = to_paper_pd(ib);
	int err;

	err = number(&dev->pds, &pd->num, pd, 1, dev->vendor->limits.max_pd);
	if (err)
		return err;
	if (dev->vendor->alloc_pd)
		err = dev->vendor->alloc_pd(pd, context_of(udata), udata);
	else /* most answer with the number alone, and some with nothing */
		err = paper_respond(udata, &pd->num, sizeof(pd->num));
	if (err)
		xa_erase(&dev->pds, pd->num);
	else
		paper_count(dev, PAPER_CREATED_PDS);
	return err;
}

static int paper_dealloc_pd(struct ib_pd *ib, struct ib_udata *udata)
{
	xa_erase(&to_paper_dev(ib->device)->pds, to_paper_pd(ib)->num);
	return 0;
}

static int paper_destroy_ah(struct ib_ah *ib, u32 flags)
{
	struct paper_dev *dev = to_paper_dev(ib->device);

	mutex_lock(&dev->lock);
	xa_erase(&dev->ahs, to_paper_ah(ib)->num);
	mutex_unlock(&dev->lock);
	return 0;
}

int paper_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_ah *ah = to_paper_ah(ib);
	int err;

	err = number(&dev->ahs, &ah->num, ah, 1, 1 << 20);
	if (err)
		return err;
	ah->attr = *attr->ah_attr;
	ah->attr.grh.sgid_attr = NULL; /* the core's reference, not ours */
	if (dev->vendor->create_ah)
		err = dev->vendor->create_ah(ah, udata);
	if (err)
		paper_destroy_ah(ib, 0);
	return err;
}

struct ib_mr *paper_reg_user_mr(struct ib_pd *ib, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_mr *mr;
	u32 num;
	int err;

	if (dev->vendor->mr_access && access & ~IB_ACCESS_OPTIONAL & ~dev->vendor->mr_access)
		return ERR_PTR(dev->vendor->no_mr_access);
	if (access & IB_ACCESS_ON_DEMAND)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = paper_pin(ib->device, &mr->mem, start, length, access);
	if (err)
		goto free;
	mr->iova = virt;
	mr->access = access;
	mr->ib.pd = ib;
	err = xa_alloc(&dev->mrs, &num, mr, XA_LIMIT(FIRST_KEY, 0xfffffe), GFP_KERNEL);
	if (err)
		goto unpin;
	mr->ib.lkey = mr->ib.rkey = num << 8;
	paper_count(dev, PAPER_CREATED_MRS);
	return &mr->ib;

unpin:
	paper_unpin(&mr->mem);
free:
	kfree(mr);
	return ERR_PTR(err);
}

static int paper_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_mr *mr = container_of(ib, struct paper_mr, ib);

	mutex_lock(&dev->lock);
	xa_erase(&dev->mrs, ib->lkey >> 8);
	mutex_unlock(&dev->lock);
	paper_unpin(&mr->mem);
	kfree(mr);
	return 0;
}

/* Completion queues. */

static int paper_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_cq *cq = to_paper_cq(ib);

	mutex_lock(&dev->lock);
	list_del_init(&cq->entry);
	xa_erase(&dev->cqs, cq->num);
	mutex_unlock(&dev->lock);
	if (dev->vendor->destroy_cq)
		dev->vendor->destroy_cq(cq);
	paper_unpin(&cq->buf);
	paper_unpin(&cq->db);
	return 0;
}

static int paper_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, PAPER_CQ_UDATA)
{
	struct ib_udata *udata = PAPER_UDATA_OF_CQ;
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_cq *cq = to_paper_cq(ib);
	int err;

	INIT_LIST_HEAD(&cq->entry);
	err = number(&dev->cqs, &cq->num, cq, 1, dev->vendor->limits.max_cq);
	if (err)
		return err;
	err = dev->vendor->create_cq(cq, attr, context_of(udata), udata);
	if (err) {
		paper_destroy_cq(ib, NULL);
		return err;
	}
	mutex_lock(&dev->lock);
	list_add_tail(&cq->entry, &dev->cq_list);
	if (attr->comp_vector < dev->vendor->vectors)
		set_bit(attr->comp_vector, dev->vectors);
	mutex_unlock(&dev->lock);
	paper_count(dev, PAPER_CREATED_CQS);
	paper_wake(dev);
	return 0;
}

static int paper_resize_cq(struct ib_cq *ib, int entries, struct ib_udata *udata)
{
	const struct paper_vendor *vendor = to_paper_dev(ib->device)->vendor;

	return vendor->resize_cq ? vendor->resize_cq(to_paper_cq(ib), entries, udata) : -EOPNOTSUPP;
}

/* Shared receive queues. */

static int paper_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_srq *srq = to_paper_srq(ib);

	mutex_lock(&dev->lock);
	list_del_init(&srq->entry);
	xa_erase(&dev->srqs, srq->num);
	mutex_unlock(&dev->lock);
	if (dev->vendor->destroy_srq)
		dev->vendor->destroy_srq(srq);
	paper_unpin(&srq->buf);
	paper_unpin(&srq->db);
	return 0;
}

int paper_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	const struct ib_device_attr *limits = &dev->vendor->limits;
	struct paper_srq *srq = to_paper_srq(ib);
	int err;

	INIT_LIST_HEAD(&srq->entry);
	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->attr.max_wr || attr->attr.max_wr > limits->max_srq_wr || attr->attr.max_sge > limits->max_srq_sge)
		return -EINVAL;
	err = number(&dev->srqs, &srq->num, srq, 1, limits->max_srq);
	if (err)
		return err;
	srq->attr = attr->attr;
	srq->attr.srq_limit = 0;
	err = dev->vendor->create_srq(srq, attr, context_of(udata), udata);
	if (err) {
		paper_destroy_srq(ib, NULL);
		return err;
	}
	mutex_lock(&dev->lock);
	list_add_tail(&srq->entry, &dev->srq_list);
	mutex_unlock(&dev->lock);
	paper_count(dev, PAPER_CREATED_SRQS);
	paper_wake(dev);
	return 0;
}

int paper_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_srq *srq = to_paper_srq(ib);
	int err = 0;

	if (mask & IB_SRQ_MAX_WR)
		return -EINVAL; /* as most drivers, which cannot resize */
	mutex_lock(&dev->lock);
	if (mask & IB_SRQ_LIMIT) {
		if (attr->srq_limit > srq->attr.max_wr)
			err = -EINVAL;
		else
			srq->attr.srq_limit = attr->srq_limit;
	}
	mutex_unlock(&dev->lock);
	paper_wake(dev);
	return err;
}

static int paper_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	*attr = to_paper_srq(ib)->attr;
	return 0;
}

/* Queue pairs. */

static int paper_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);

	mutex_lock(&dev->lock);
	list_del_init(&qp->entry);
	if (qp->num)
		xa_erase(&dev->qps, qp->num >> dev->vendor->qp_shift);
	mutex_unlock(&dev->lock);
	if (dev->vendor->destroy_qp)
		dev->vendor->destroy_qp(qp);
	paper_unpin(&qp->buf);
	paper_unpin(&qp->sq);
	paper_unpin(&qp->rq);
	paper_unpin(&qp->db);
	kfree(qp->pending);
	return 0;
}

int paper_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	const struct paper_vendor *vendor = dev->vendor;
	const struct ib_device_attr *limits = &vendor->limits;
	struct paper_qp *qp = to_paper_qp(ib);
	struct ib_qp_cap *cap = &attr->cap;
	unsigned int type = attr->qp_type == IB_QPT_DRIVER ? 31 : attr->qp_type;
	int err;

	INIT_LIST_HEAD(&qp->entry);
	if (type > 31 || !(vendor->qp_types & BIT(type)))
		return vendor->no_qp_type ?: -EOPNOTSUPP;
	if (attr->create_flags)
		return -EINVAL;
	if (!vendor->own_sizes && (cap->max_send_wr > limits->max_qp_wr || cap->max_send_sge > limits->max_send_sge))
		return -EINVAL;
	if (!vendor->own_sizes && !attr->srq && (cap->max_recv_wr > limits->max_qp_wr || cap->max_recv_sge > limits->max_recv_sge))
		return -EINVAL;

	qp->type = attr->qp_type;
	qp->attr.qp_state = IB_QPS_RESET;
	qp->send_cq = attr->send_cq ? to_paper_cq(attr->send_cq) : NULL;
	qp->recv_cq = attr->recv_cq ? to_paper_cq(attr->recv_cq) : NULL;
	qp->srq = attr->srq ? to_paper_srq(attr->srq) : NULL;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->cap = *cap;
	qp->pending = kzalloc(sizeof(*qp->pending), GFP_KERNEL);
	if (!qp->pending)
		return -ENOMEM;
	err = number(&dev->qps, &qp->num, qp, 2, limits->max_qp);
	if (err) {
		qp->num = 0;
		kfree(qp->pending);
		return err;
	}
	qp->num <<= vendor->qp_shift;
	ib->qp_num = qp->num;
	err = vendor->create_qp(qp, attr, context_of(udata), udata);
	if (err) {
		paper_destroy_qp(ib, NULL);
		return err;
	}
	mutex_lock(&dev->lock);
	list_add_tail(&qp->entry, &dev->qp_list);
	mutex_unlock(&dev->lock);
	paper_count(dev, PAPER_CREATED_QPS);
	paper_wake(dev);
	return 0;
}

static int paper_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);
	/* The table of the core ends at the types that it knows. */
	enum ib_qp_type type = qp->type == IB_QPT_DRIVER ? IB_QPT_UD : qp->type;
	enum ib_qp_state from, to;
	int err = -EINVAL;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (dev->vendor->modify_qp) {
		err = dev->vendor->modify_qp(qp, attr, mask, udata);
		if (err)
			return err;
		err = -EINVAL;
	}
	mutex_lock(&dev->lock);
	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : paper_state(qp);
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	/* Reliable datagrams take what the others do, and an RNR retry. */
	if (from != paper_state(qp) || !ib_modify_qp_is_ok(from, to, type, qp->type == IB_QPT_DRIVER ? mask & ~IB_QP_RNR_RETRY : mask))
		goto unlock;
	if (mask & IB_QP_PORT && attr->port_num != 1)
		goto unlock;
	if (mask & IB_QP_PKEY_INDEX && dev->port.link == IB_LINK_LAYER_INFINIBAND && attr->pkey_index >= ARRAY_SIZE(dev->port.pkeys))
		goto unlock;
	if (mask & IB_QP_AV && (dev->port.grh_required || dev->port.link == IB_LINK_LAYER_ETHERNET) && !dev->vendor->iwarp &&
	    !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH))
		goto unlock;
	err = 0;

#define TAKE(flag, member)                               \
	if (mask & (flag))                               \
		qp->attr.member = attr->member
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_QKEY, qkey);
	TAKE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_DEST_QPN, dest_qp_num);
#undef TAKE
	if (mask & IB_QP_AV) {
		qp->attr.ah_attr = attr->ah_attr;
		qp->attr.ah_attr.grh.sgid_attr = NULL; /* the core's reference, not ours */
	}
	qp->attr.qp_state = to;
	if (to == IB_QPS_RESET) {
		memset(&qp->attr, 0, sizeof(qp->attr));
		qp->busy = qp->flushed = qp->established = false;
		qp->sq_ci = qp->rq_ci = 0;
		if (dev->vendor->reset_qp)
			dev->vendor->reset_qp(qp);
	}
	paper_count(dev, PAPER_MODIFIED_QPS);
unlock:
	mutex_unlock(&dev->lock);
	paper_wake(dev);
	return err;
}

int paper_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct paper_dev *dev = to_paper_dev(ib->device);
	struct paper_qp *qp = to_paper_qp(ib);

	mutex_lock(&dev->lock);
	*attr = qp->attr;
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	mutex_unlock(&dev->lock);
	init->qp_type = qp->type;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

static const struct ib_device_ops core_ops = {
	.owner = THIS_MODULE,
	.add_gid = paper_add_gid,
	.alloc_pd = paper_alloc_pd,
	.alloc_ucontext = paper_alloc_ucontext,
	.create_ah = paper_create_ah,
	.create_cq = paper_create_cq,
	.create_qp = paper_create_qp,
	.create_srq = paper_create_srq,
	.create_user_ah = paper_create_ah,
	.dealloc_pd = paper_dealloc_pd,
	.dealloc_ucontext = paper_dealloc_ucontext,
	.del_gid = paper_add_gid,
	.dereg_mr = paper_dereg_mr,
	.destroy_ah = paper_destroy_ah,
	.destroy_cq = paper_destroy_cq,
	.destroy_qp = paper_destroy_qp,
	.destroy_srq = paper_destroy_srq,
	.disassociate_ucontext = paper_disassociate,
	.get_dev_fw_str = paper_fw_str,
	.get_link_layer = paper_link_layer,
	.get_port_immutable = paper_port_immutable,
	.mmap = paper_mmap,
	.modify_qp = paper_modify_qp,
	.modify_srq = paper_modify_srq,
	.query_device = paper_query_device,
	.query_gid = paper_query_gid,
	.query_pkey = paper_query_pkey,
	.query_port = paper_query_port,
	.query_qp = paper_query_qp,
	.query_srq = paper_query_srq,
	.reg_user_mr = paper_reg_user_mr,
	.resize_cq = paper_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, paper_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, paper_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, paper_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, paper_qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_srq, paper_srq, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, paper_ucontext, ib),
};

/* What tests look at, below /sys/kernel/debug/paper/DEVICE. */

/* In the order of enum paper_count. */
static const char *const count_names[] = {
	"sends", "receives", "completions", "events", "armed",
	"created_cqs", "created_srqs", "created_qps", "created_pds", "created_mrs", "modified_qps",
	"writes", "reads", "inline", "signalled", "bytes",
};
static_assert(ARRAY_SIZE(count_names) == PAPER_COUNTS);

static int counters_show(struct seq_file *file, void *unused)
{
	struct paper_dev *dev = file->private;
	int i;

	for (i = 0; i < PAPER_COUNTS; i++)
		seq_printf(file, "%s %lld\n", count_names[i], atomic64_read(&dev->counts[i]));
	/* mlx5_core, from Linux 6.5 on, makes an event queue when a vector is first used, and keeps it. */
	seq_printf(file, "event_queues %u\n", bitmap_weight(dev->vectors, dev->vendor->vectors));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

static int vectors_show(struct seq_file *file, void *unused)
{
	struct paper_dev *dev = file->private;

	seq_printf(file, "%*pbl\n", dev->vendor->vectors, dev->vectors);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(vectors);

/* The parent: libraries that find their devices by PCI id look at its modalias. */

static struct paper_dev *of_parent(struct device *parent)
{
	return container_of(parent, struct paper_dev, parent);
}

static ssize_t modalias_show(struct device *parent, struct device_attribute *attr, char *buf)
{
	const struct paper_vendor *v = of_parent(parent)->vendor;

	return sysfs_emit(buf, "pci:v%08Xd%08Xsv%08Xsd%08Xbc02sc00i00\n", v->pci_vendor, v->pci_device, v->pci_vendor, v->pci_device);
}
static DEVICE_ATTR_RO(modalias);

static ssize_t vendor_show(struct device *parent, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0x%04x\n", of_parent(parent)->vendor->pci_vendor);
}
static DEVICE_ATTR_RO(vendor);

static ssize_t device_show(struct device *parent, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "0x%04x\n", of_parent(parent)->vendor->pci_device);
}
static DEVICE_ATTR_RO(device);

static struct attribute *parent_attrs[] = { &dev_attr_modalias.attr, &dev_attr_vendor.attr, &dev_attr_device.attr, NULL };
ATTRIBUTE_GROUPS(parent);

/* The parent lives in its device, which is freed after it. */
static void parent_release(struct device *parent)
{
}

/* The parent is bound to a driver of the name that the vendor's has on its bus, as
 * /sys/class/infiniband/DEVICE/device/driver shows it. */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int bus_match(struct device *parent, const struct device_driver *driver)
#else
static int bus_match(struct device *parent, struct device_driver *driver)
#endif
{
	return !strcmp(of_parent(parent)->vendor->bus_driver, driver->name);
}

static struct bus_type bus = { .name = "paper", .match = bus_match };
static struct device_driver drivers[ARRAY_SIZE(vendors)];

static void unregister_drivers(unsigned int n)
{
	while (n--)
		if (drivers[n].name)
			driver_unregister(&drivers[n]);
	bus_unregister(&bus);
}

static int register_drivers(void)
{
	unsigned int i;
	int err = bus_register(&bus);

	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(vendors); i++) {
		if (i && !strcmp(vendors[i]->bus_driver, vendors[i - 1]->bus_driver))
			continue; /* two models of one vendor */
		drivers[i].name = vendors[i]->bus_driver;
		drivers[i].bus = &bus;
		drivers[i].owner = THIS_MODULE;
		err = driver_register(&drivers[i]);
		if (err) {
			drivers[i].name = NULL;
			unregister_drivers(i);
			return err;
		}
	}
	return 0;
}

static void release_netdev(struct paper_dev *dev)
{
	if (!dev->port.netdev)
		return;
	if (dev->vendor->give_netdev)
		dev->vendor->give_netdev(dev->port.netdev);
	dev_put(dev->port.netdev);
}

static void paper_remove(struct paper_dev *dev)
{
	list_del(&dev->entry);
	debugfs_remove_recursive(dev->debugfs);
	ib_unregister_device(&dev->ib);
	kthread_stop(dev->thread);
	release_netdev(dev);
	device_unregister(&dev->parent);
	__free_page(dev->page);
	bitmap_free(dev->vectors);
	ib_dealloc_device(&dev->ib);
}

/* Fills in the port as the options of the adapter say. */
static int configure(struct paper_dev *dev, char *options)
{
	struct paper_port *port = &dev->port;
	char *option;

	port->link = dev->vendor->link;
	port->active = true;
	port->pkeys[0] = 0xffff;
	while ((option = strsep(&options, "-"))) {
		if (!strcmp(option, "ib")) {
			port->link = IB_LINK_LAYER_INFINIBAND;
		} else if (!strcmp(option, "grh")) {
			port->grh_required = true;
		} else if (!strcmp(option, "limited")) {
			/* a limited member first, as nodes of a partitioned fabric have it */
			port->pkeys[0] = 0x7fff;
			port->pkeys[1] = 0xffff;
		} else if (!strcmp(option, "down")) {
			port->active = false;
		} else {
			pr_err("paper: %s has no option %s\n", dev->vendor->name, option);
			return -EINVAL;
		}
	}
	if (port->link == IB_LINK_LAYER_INFINIBAND)
		port->lid = 5;
	if (port->link == IB_LINK_LAYER_ETHERNET) {
		port->netdev = dev_get_by_name(&init_net, netdev);
		if (!port->netdev) {
			pr_err("paper: there is no network device %s for %s\n", netdev, dev->vendor->name);
			return -ENODEV;
		}
		if (dev->vendor->take_netdev)
			dev->vendor->take_netdev(port->netdev);
	}
	return 0;
}

static int paper_add(char *spec, unsigned int number)
{
	char desc[IB_DEVICE_NODE_DESC_MAX] = {}, *options = spec, *name;
	const struct paper_vendor *vendor = NULL;
	struct paper_dev *dev;
	unsigned int i;
	int err;

	strscpy(desc, spec, sizeof(desc));
	name = strsep(&options, "-");
	for (i = 0; i < ARRAY_SIZE(vendors); i++)
		if (!strcmp(vendors[i]->name, name))
			vendor = vendors[i];
	if (!vendor) {
		pr_err("paper: there is no adapter %s\n", name);
		return -EINVAL;
	}
	dev = ib_alloc_device(paper_dev, ib);
	if (!dev)
		return -ENOMEM;
	dev->vendor = vendor;
	mutex_init(&dev->lock);
	init_waitqueue_head(&dev->wake);
	INIT_LIST_HEAD(&dev->cq_list);
	INIT_LIST_HEAD(&dev->srq_list);
	INIT_LIST_HEAD(&dev->qp_list);
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->srqs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->pds, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC1);
	err = configure(dev, options);
	if (err)
		goto dealloc;

	err = -ENOMEM;
	dev->page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	dev->vectors = bitmap_zalloc(vendor->vectors, GFP_KERNEL);
	if (!dev->page || !dev->vectors)
		goto free;

	dev->parent.bus = &bus;
	dev->parent.release = parent_release;
	dev->parent.groups = parent_groups;
	dev_set_name(&dev->parent, "paper%u", number);
	err = device_register(&dev->parent);
	if (err) {
		put_device(&dev->parent);
		goto free;
	}

	dev->ib.node_guid = cpu_to_be64(0x0200000000000000ULL | (u64)vendor->pci_vendor << 16 | (number + 1));
	dev->ib.node_type = vendor->iwarp ? RDMA_NODE_RNIC : vendor->link == IB_LINK_LAYER_UNSPECIFIED ? RDMA_NODE_UNSPECIFIED : RDMA_NODE_IB_CA;
	dev->ib.phys_port_cnt = 1;
	dev->ib.num_comp_vectors = vendor->vectors;
	dev->ib.dev.parent = &dev->parent;
	memcpy(dev->ib.node_desc, desc, sizeof(desc)); /* which tells tests what the device was made as */
	if (vendor->ops)
		dev->ops = *vendor->ops;
	dev->ops.driver_id = vendor->driver_id;
	dev->ops.uverbs_abi_ver = vendor->abi;
	ib_set_device_ops(&dev->ib, &dev->ops); /* before the core's: the first one stays */
	ib_set_device_ops(&dev->ib, &core_ops);
	if (!vendor->create_srq) {
		dev->ib.ops.create_srq = NULL;
		dev->ib.ops.modify_srq = NULL;
		dev->ib.ops.query_srq = NULL;
		dev->ib.ops.destroy_srq = NULL;
	}
	if (!vendor->resize_cq)
		dev->ib.ops.resize_cq = NULL;
	if (vendor->leave_out)
		vendor->leave_out(&dev->ib.ops);
	if (dev->port.netdev) {
		err = ib_device_set_netdev(&dev->ib, dev->port.netdev, 1);
		if (err)
			goto unparent;
	}
	dev->thread = kthread_run(paper_data_thread, dev, "paper%u", number);
	if (IS_ERR(dev->thread)) {
		err = PTR_ERR(dev->thread);
		goto unparent;
	}
	err = ib_register_device(&dev->ib, vendor->device, NULL);
	if (err)
		goto stop;
	dev->debugfs = debugfs_create_dir(dev_name(&dev->ib.dev), debugfs);
	debugfs_create_file("counters", 0444, dev->debugfs, dev, &counters_fops);
	debugfs_create_file("vectors", 0444, dev->debugfs, dev, &vectors_fops);
	list_add_tail(&dev->entry, &devices);
	return 0;

stop:
	kthread_stop(dev->thread);
unparent:
	device_unregister(&dev->parent);
free:
	bitmap_free(dev->vectors);
	if (dev->page)
		__free_page(dev->page);
	release_netdev(dev);
dealloc:
	ib_dealloc_device(&dev->ib);
	pr_err("paper: %s cannot be made: %d\n", vendor->name, err);
	return err;
}

/* remove_without_netdev removes the devices whose network device goes, as drivers do:
 * whoever takes that away waits until nobody holds it. */
static void remove_without_netdev(struct work_struct *work)
{
	struct paper_dev *dev, *next;

	mutex_lock(&devices_lock);
	list_for_each_entry_safe (dev, next, &devices, entry)
		if (dev->port.netdev && READ_ONCE(dev->port.netdev->reg_state) != NETREG_REGISTERED)
			paper_remove(dev);
	mutex_unlock(&devices_lock);
}
static DECLARE_WORK(netdev_goes, remove_without_netdev);

/* Not here: the core's own work upon the event takes the lock that is held now. */
static int netdev_event(struct notifier_block *self, unsigned long event, void *info)
{
	if (event == NETDEV_UNREGISTER)
		schedule_work(&netdev_goes);
	return NOTIFY_DONE;
}
static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

static void remove_all(void)
{
	struct paper_dev *dev, *next;

	unregister_netdevice_notifier(&netdev_notifier);
	flush_work(&netdev_goes);
	mutex_lock(&devices_lock); /* one may be on its way out: its bus and its code go last */
	list_for_each_entry_safe (dev, next, &devices, entry)
		paper_remove(dev);
	mutex_unlock(&devices_lock);
	debugfs_remove_recursive(debugfs);
	unregister_drivers(ARRAY_SIZE(drivers));
}

static int __init paper_init(void)
{
	char *list = kstrdup(adapters, GFP_KERNEL), *rest = list, *spec;
	unsigned int number = 0;
	int err = 0;

	if (!list)
		return -ENOMEM;
	err = register_drivers();
	if (!err) {
		err = register_netdevice_notifier(&netdev_notifier);
		if (err)
			unregister_drivers(ARRAY_SIZE(drivers));
	}
	if (err) {
		kfree(list);
		return err;
	}
	debugfs = debugfs_create_dir("paper", NULL);
	mutex_lock(&devices_lock);
	while (!err && (spec = strsep(&rest, ",")))
		if (*spec)
			err = paper_add(spec, number++);
	mutex_unlock(&devices_lock);
	kfree(list);
	if (err)
		remove_all();
	return err;
}

static void __exit paper_exit(void)
{
	remove_all();
}

module_init(paper_init);
module_exit(paper_exit);
