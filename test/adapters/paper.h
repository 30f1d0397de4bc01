/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Paper adapters: RDMA devices that are real to the kernel's RDMA core and to the
 * vendors' libraries, and have no hardware behind them. The core (core.c, data.c)
 * has the objects, the rules of their states, and the delivery of messages from a
 * device to itself; a vendor's file speaks that vendor's private ABI.
 */
#ifndef PAPER_H
#define PAPER_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#define PAPER_MAX_SGE 32
#define PAPER_MAX_INLINE 1024

/*
 * Until 6.10 the core hands create_cq an ib_udata, from then on what it is in.
 * PAPER_CREATE_CQ declares a function that the core can call either way.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define PAPER_CQ_UDATA struct uverbs_attr_bundle *attrs
#define PAPER_UDATA_OF_CQ (&attrs->driver_udata)
#else
#define PAPER_CQ_UDATA struct ib_udata *attrs
#define PAPER_UDATA_OF_CQ (attrs)
#endif

struct paper_dev;

/* Memory of the process that a queue, a doorbell record or a region lies in: pinned,
 * and mapped into the kernel, for as long as the object lives. */
struct paper_mem {
	struct ib_umem *umem;
	void *map; /* what vmap returned */
	void *va; /* the kernel's address of the first byte */
	u64 addr; /* the process's */
	size_t len;
};

/* paper_pin returns 0 or a negative errno; *mem is all zero after an error. */
int paper_pin(struct ib_device *ib, struct paper_mem *mem, u64 addr, size_t len, int access);
void paper_unpin(struct paper_mem *mem);

struct paper_ucontext {
	struct ib_ucontext ib;
	struct list_head traps;
	unsigned long priv[8]; /* the vendor's */
};

struct paper_pd {
	struct ib_pd ib;
	u32 num;
};

struct paper_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
	u32 num;
};

struct paper_mr {
	struct ib_mr ib;
	struct paper_mem mem;
	u64 iova;
	int access;
};

enum paper_arm { PAPER_UNARMED, PAPER_ARM_NEXT, PAPER_ARM_SOLICITED };

struct paper_cq {
	struct ib_cq ib;
	u32 num;
	struct paper_mem buf, db;
	u32 entries; /* how many the ring has */
	u32 pi; /* completions written, ever */
	u32 solicited_pi; /* pi after the last solicited or unsuccessful one */
	enum paper_arm arm;
	u32 arm_ci; /* an event is due for what was written from here on */
	u32 told_pi; /* pi when the last event was raised */
	u32 events; /* raised, ever */
	bool dead; /* it overflowed */
	struct list_head entry;
	unsigned long priv[8]; /* the vendor's */
};

struct paper_srq {
	struct ib_srq ib;
	u32 num;
	struct paper_mem buf, db;
	struct ib_srq_attr attr; /* as query_srq tells it */
	u32 taken; /* requests that were taken from it, ever */
	struct list_head entry;
	unsigned long priv[8]; /* the vendor's */
};

struct paper_sge {
	u64 addr;
	u32 len, lkey;
};

/* A work request, as the vendor's file read it from its queue. */
struct paper_wr {
	enum ib_wr_opcode opcode;
	int flags; /* IB_SEND_SIGNALED, IB_SEND_SOLICITED, IB_SEND_INLINE */
	unsigned int nsge;
	struct paper_sge sge[PAPER_MAX_SGE];
	unsigned int inline_len; /* with IB_SEND_INLINE: sge does not count */
	u8 inline_data[PAPER_MAX_INLINE];
	__be32 imm;
	u32 invalidate_rkey;
	u64 remote_addr;
	u32 rkey;
	u64 compare_add, swap;
	struct { /* UD */
		u32 qpn, qkey;
		bool global;
		union ib_gid gid;
		u16 lid;
	} to;
	u64 id; /* the vendor's: what its completion needs to name the request */
	u32 index, vendor; /* likewise */
};

/* A store to a doorbell: where in the area, the value and its size. It is called with
 * the lock of the device held; the device's thread is woken afterwards. */
typedef void paper_stored(struct paper_ucontext *ctx, unsigned long cookie, unsigned long offset, u64 value, unsigned int size);

struct paper_qp;

/* A completion to be written. */
struct paper_wc {
	struct paper_qp *qp;
	struct paper_srq *srq; /* the queue of the receive, or NULL: the pair's own */
	const struct paper_wr *wr; /* the request that is complete */
	bool recv;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
	int flags; /* IB_WC_WITH_IMM, IB_WC_GRH, IB_WC_WITH_INVALIDATE */
	bool solicited;
	u32 byte_len;
	__be32 imm;
	u32 src_qp;
	u16 slid;
};

struct paper_qp {
	struct ib_qp ib;
	enum ib_qp_type type;
	u32 num;
	struct paper_cq *send_cq, *recv_cq;
	struct paper_srq *srq;
	struct paper_mem buf, db; /* the vendor may use them as it likes */
	struct paper_mem sq, rq;
	struct ib_qp_cap cap; /* as query_qp tells it */
	bool sig_all;
	struct ib_qp_attr attr; /* attr.qp_state is the state */
	u32 sq_ci, rq_ci; /* requests taken, ever; 0 again in RESET */
	struct paper_wr *pending; /* a send under way, if busy */
	bool busy;
	bool flushed; /* it is in ERR, and LAST_WQE_REACHED was raised */
	bool established; /* COMM_EST was raised */
	unsigned long retry_at; /* in jiffies; when to give up on the pending send */
	struct list_head entry;
	unsigned long priv[16]; /* the vendor's */
};

static inline enum ib_qp_state paper_state(const struct paper_qp *qp)
{
	return qp->attr.qp_state;
}

/* What an adapter is, and how it speaks with its library. A NULL hook is left out.
 * Hooks return 0 or a negative errno unless told otherwise. */
struct paper_vendor {
	const char *name; /* in adapters= */
	const char *device; /* pattern of the device's name */
	enum rdma_driver_id driver_id;
	u32 abi; /* of the library, uverbs_abi_ver */
	u16 pci_vendor, pci_device; /* what the parent poses as */
	const char *bus_driver; /* what it is bound to */
	enum rdma_link_layer link; /* of its port, unless the option "ib" says otherwise */
	bool iwarp;
	u32 vectors;
	u32 qp_types; /* bits of enum ib_qp_type that can be created */
	int no_qp_type; /* the errno for others, negative; 0 for -EOPNOTSUPP */
	u32 qp_shift; /* low bits of the number of a queue pair that are 0 */
	bool own_sizes; /* create_qp judges what is asked, not the core by limits */
	int mr_access; /* flags that a region can have, besides optional ones; 0: all */
	int no_mr_access; /* the errno for others, negative */
	/* Where a field is 0, paper_query_device and paper_query_port say what most have. */
	struct ib_device_attr limits;
	struct ib_port_attr port;
	const struct ib_device_ops *ops; /* what is answered otherwise than by the core; may set an op that the core has */

	/* Has the network device of a port answer as its driver would, and gives it back. */
	void (*take_netdev)(struct net_device *netdev);
	void (*give_netdev)(struct net_device *netdev);
	/* Takes from the ops what the driver does not have. */
	void (*leave_out)(struct ib_device_ops *ops);
	int (*query_device)(struct paper_dev *dev, struct ib_device_attr *attr, struct ib_udata *udata);
	int (*alloc_ucontext)(struct paper_ucontext *ctx, struct ib_udata *udata);
	/* Without mmap, a process can map so many pages of doorbells, one by one. */
	int (*mmap)(struct paper_ucontext *ctx, struct vm_area_struct *vma);
	unsigned long doorbell_pages;
	paper_stored *stored; /* what is stored there; NULL if it does not matter */
	int (*alloc_pd)(struct paper_pd *pd, struct paper_ucontext *ctx, struct ib_udata *udata);
	int (*create_ah)(struct paper_ah *ah, struct ib_udata *udata);
	/* Pins what is needed (the core unpins buf, db, sq, rq), sets ib.cqe and entries. num is set before. */
	int (*create_cq)(struct paper_cq *cq, const struct ib_cq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata);
	int (*resize_cq)(struct paper_cq *cq, int entries, struct ib_udata *udata);
	/* May change attr->attr: what is written back; sets srq->attr: what is queried. */
	int (*create_srq)(struct paper_srq *srq, struct ib_srq_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata);
	/* May change attr->cap: what is written back; sets qp->cap: what is queried. */
	int (*create_qp)(struct paper_qp *qp, struct ib_qp_init_attr *attr, struct paper_ucontext *ctx, struct ib_udata *udata);
	/* Called before the attributes are checked and take effect, with no lock held. */
	int (*modify_qp)(struct paper_qp *qp, const struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
	/* What create_* made beyond the memory that the core unpins. */
	void (*destroy_cq)(struct paper_cq *cq);
	void (*destroy_srq)(struct paper_srq *srq);
	void (*destroy_qp)(struct paper_qp *qp);

	/*
	 * The data path; without next_send there is none. All are called with the
	 * lock of the device held, by the device's thread.
	 */
	/* Reads the next request that the process has posted, if there is one: 1, and
	 * it is taken from the queue. 0: there is none. Negative: it makes no sense;
	 * it is taken, and *wr has what a completion with an error needs. */
	int (*next_send)(struct paper_qp *qp, struct paper_wr *wr);
	/* Likewise the next receive: from the SRQ if srq is not NULL. */
	int (*next_recv)(struct paper_qp *qp, struct paper_srq *srq, struct paper_wr *wr);
	/* How many receives the SRQ has; for the limit event. */
	u32 (*srq_avail)(struct paper_srq *srq);
	/* Writes a completion as number cq->pi (the core counts it afterwards);
	 * -ENOSPC if the ring is full, 1 if the process is to be told of it later. */
	int (*complete)(struct paper_cq *cq, const struct paper_wc *wc);
	/* Sees whether the process has armed the queue since, and calls paper_arm. */
	void (*poll_arm)(struct paper_cq *cq);
	/* The pair goes to RESET: indices that the vendor keeps start again. */
	void (*reset_qp)(struct paper_qp *qp);
};

struct paper_port {
	enum rdma_link_layer link;
	bool active, grh_required;
	u16 lid;
	u16 pkeys[2];
	struct net_device *netdev;
};

/* What is counted of a device, in debugfs. */
enum paper_count {
	PAPER_SENDS, PAPER_RECEIVES, PAPER_COMPLETIONS, PAPER_EVENTS, PAPER_ARMED,
	PAPER_CREATED_CQS, PAPER_CREATED_SRQS, PAPER_CREATED_QPS, PAPER_CREATED_PDS, PAPER_CREATED_MRS,
	PAPER_MODIFIED_QPS,
	PAPER_WRITES, PAPER_READS, PAPER_INLINE, PAPER_SIGNALLED, PAPER_BYTES, /* of sends */
	PAPER_COUNTS
};

struct paper_dev {
	struct ib_device ib;
	const struct paper_vendor *vendor;
	struct ib_device_ops ops;
	struct device parent;
	struct paper_port port;
	struct mutex lock; /* of the lists, of all states, and of the data path */
	struct xarray cqs, srqs, qps, mrs, pds, ahs;
	struct list_head cq_list, srq_list, qp_list;
	struct task_struct *thread;
	wait_queue_head_t wake;
	struct paper_wr receive; /* the one that the thread works on */
	atomic64_t counts[PAPER_COUNTS];
	unsigned long *vectors; /* those that a CQ was ever created on */
	struct page *page; /* what stores to doorbells go to */
	struct dentry *debugfs;
	struct list_head entry;
};

#define paper_of(what, from, member) container_of(from, struct what, member)
static inline struct paper_dev *to_paper_dev(struct ib_device *ib) { return container_of(ib, struct paper_dev, ib); }
static inline struct paper_cq *to_paper_cq(struct ib_cq *ib) { return container_of(ib, struct paper_cq, ib); }
static inline struct paper_srq *to_paper_srq(struct ib_srq *ib) { return container_of(ib, struct paper_srq, ib); }
static inline struct paper_qp *to_paper_qp(struct ib_qp *ib) { return container_of(ib, struct paper_qp, ib); }
static inline struct paper_pd *to_paper_pd(struct ib_pd *ib) { return container_of(ib, struct paper_pd, ib); }
static inline struct paper_ah *to_paper_ah(struct ib_ah *ib) { return container_of(ib, struct paper_ah, ib); }
static inline struct paper_mr *to_paper_mr(struct ib_mr *ib) { return container_of(ib, struct paper_mr, ib); }
static inline struct paper_ucontext *to_paper_ucontext(struct ib_ucontext *ib) { return container_of(ib, struct paper_ucontext, ib); }

/* PAPER_OWN defines a function that returns what a vendor keeps of an object. */
#define PAPER_OWN(function, own, paper)                              \
	static inline struct own *function(struct paper *object)     \
	{                                                            \
		BUILD_BUG_ON(sizeof(struct own) > sizeof(object->priv)); \
		return (struct own *)object->priv;                   \
	}

/* The vendor's code of a status, from a table of those that are not 0. */
#define PAPER_CODE(codes, status, otherwise) \
	((status) == IB_WC_SUCCESS ? 0 : (status) < ARRAY_SIZE(codes) && (codes)[status] ? (codes)[status] : (otherwise))

/* The codes of mlx5 and hns, and those of bnxt_re and qedr for sends. */
extern const u8 paper_syndromes[IB_WC_GENERAL_ERR];
extern const u8 paper_requester_errors[IB_WC_GENERAL_ERR];

/* Called with the lock of the device held. */
static inline struct paper_qp *paper_find_qp(struct paper_dev *dev, u32 num)
{
	struct paper_qp *qp = xa_load(&dev->qps, num >> dev->vendor->qp_shift);

	return qp && qp->num == num ? qp : NULL;
}

static inline void paper_count(struct paper_dev *dev, enum paper_count what) { atomic64_inc(&dev->counts[what]); }

/* Maps a writable page of nobody's wherever the process maps a doorbell: what is
 * stored there is seen by nobody. Each page of the area is the same one. */
int paper_mmap_ignored(struct paper_ucontext *ctx, struct vm_area_struct *vma);

/*
 * Maps pages that trap each store of the process to them (8 bytes at most, by mov of
 * a general register), and calls stored in the context of that process.
 */
int paper_mmap_trapped(struct paper_ucontext *ctx, struct vm_area_struct *vma, paper_stored *stored, unsigned long cookie);

/* The queue is armed: an event is due as soon as there is a completion of this kind
 * whose number is ci or higher. Called with the lock of the device held. */
void paper_arm(struct paper_cq *cq, enum paper_arm arm, u32 ci);

/* Wakes the device's thread; needed after a trapped doorbell. */
void paper_wake(struct paper_dev *dev);

/* Says in the kernel's log why something is refused, and is the errno. */
#define paper_refuse(err, ib, ...) (ibdev_err(ib, __VA_ARGS__), (err))

/* Answers the process: as much of the response as it has room for, as drivers do. */
int paper_respond(struct ib_udata *udata, void *resp, size_t len);
/* Reads a request: what the process did not send is 0. -EINVAL if it has fewer than least bytes. */
int paper_request(struct ib_udata *udata, void *req, size_t len, size_t least);

/* The core's answers, for the op of a vendor that refuses more, or tells more. */
int paper_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *attr, struct ib_udata *udata);
int paper_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int paper_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int paper_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata);
void paper_dealloc_ucontext(struct ib_ucontext *ib);
int paper_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
struct ib_mr *paper_reg_user_mr(struct ib_pd *ib, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata);

/* data.c, for the core */
int paper_data_thread(void *dev);
/* ethernet.c, for mlx5 */
void paper_take_netdev(struct net_device *netdev);
void paper_give_netdev(struct net_device *netdev);
/* trap.c, for the core: after it no store of the process reaches the context. */
void paper_forget_traps(struct paper_ucontext *ctx);

extern const struct paper_vendor paper_bnxt_re;
extern const struct paper_vendor paper_efa;
extern const struct paper_vendor paper_efa_eq;
extern const struct paper_vendor paper_erdma;
extern const struct paper_vendor paper_hns;
extern const struct paper_vendor paper_irdma;
extern const struct paper_vendor paper_mana;
extern const struct paper_vendor paper_mlx5;
extern const struct paper_vendor paper_qedr;

#endif
