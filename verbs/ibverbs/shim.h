/*
 * Every verb is called through this header. Each helper returns 0 or a
 * positive errno and writes its results through out-pointers, behind which the
 * caller has zeros, so that errno is read in the thread and at the moment in
 * which it was set. Each measures the call alone, by CLOCK_MONOTONIC, and writes
 * nanoseconds to ns: how long it took, and when it began.
 */
#ifndef RDMA_EXPORTER_SHIM_H
#define RDMA_EXPORTER_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline int64_t shim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * libibverbs tells of a failure in four ways: a positive errno, a negative one,
 * -1 with errno set, and NULL with errno set. What fails and tells of none is
 * verbs.NoErrno, as where a provider sets errno to the -1 that it was told itself
 * (libirdma's ibv_create_ah).
 */
#define SHIM_NO_ERRNO 4095

static inline int shim_set_errno(void)
{
	return errno > 0 ? errno : errno < -1 ? -errno : SHIM_NO_ERRNO;
}

static inline int shim_errno(int ret)
{
	if (ret >= 0)
		return ret;
	return ret == -1 ? shim_set_errno() : -ret;
}

static inline int shim_null_errno(const void *p)
{
	return p ? 0 : shim_set_errno();
}

#define SHIM_TIMED(call)                          \
	do {                                      \
		int64_t shim_start;               \
		errno = 0;                        \
		shim_start = shim_now();          \
		call;                             \
		ns[0] = shim_now() - shim_start;  \
		ns[1] = shim_start;               \
	} while (0)

#define SHIM_PTR(out, call)                       \
	do {                                      \
		SHIM_TIMED(*(out) = (call));      \
		return shim_null_errno(*(out));   \
	} while (0)

#define SHIM_INT(call)                            \
	do {                                      \
		int shim_ret;                     \
		SHIM_TIMED(shim_ret = (call));    \
		return shim_errno(shim_ret);      \
	} while (0)

/* Each of these verbs takes an object and ends it. */
#define SHIM_ENDS(verb, type)                                     \
	static inline int shim_##verb(type *object, int64_t *ns)  \
	{                                                         \
		SHIM_INT(ibv_##verb(object));                     \
	}

SHIM_ENDS(close_device, struct ibv_context)
SHIM_ENDS(dealloc_pd, struct ibv_pd)
SHIM_ENDS(dereg_mr, struct ibv_mr)
SHIM_ENDS(destroy_ah, struct ibv_ah)
SHIM_ENDS(destroy_comp_channel, struct ibv_comp_channel)
SHIM_ENDS(destroy_cq, struct ibv_cq)
SHIM_ENDS(destroy_srq, struct ibv_srq)
SHIM_ENDS(destroy_qp, struct ibv_qp)

static inline int shim_get_device_list(struct ibv_device ***list, int *n, int64_t *ns)
{
	SHIM_PTR(list, ibv_get_device_list(n));
}

static inline int shim_open_device(struct ibv_device *dev, struct ibv_context **ctx, int64_t *ns)
{
	SHIM_PTR(ctx, ibv_open_device(dev));
}

static inline int shim_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr, int64_t *ns)
{
	SHIM_INT(ibv_query_device(ctx, attr));
}

static inline int shim_query_device_ex(struct ibv_context *ctx, struct ibv_device_attr_ex *attr, int64_t *ns)
{
	SHIM_INT(ibv_query_device_ex(ctx, NULL, attr));
}

static inline int shim_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, int64_t *ns)
{
	SHIM_INT(ibv_query_port(ctx, port, attr));
}

static inline int shim_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
				       size_t *n, int64_t *ns)
{
	ssize_t ret;

	SHIM_TIMED(ret = ibv_query_gid_table(ctx, entries, max, 0));
	*n = ret < 0 ? 0 : (size_t)ret;
	return ret < 0 ? shim_errno((int)ret) : 0;
}

static inline int shim_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey, int64_t *ns)
{
	SHIM_INT(ibv_query_pkey(ctx, port, index, pkey));
}

static inline int shim_alloc_pd(struct ibv_context *ctx, struct ibv_pd **pd, int64_t *ns)
{
	SHIM_PTR(pd, ibv_alloc_pd(ctx));
}

static inline int shim_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access, struct ibv_mr **mr, int64_t *ns)
{
	SHIM_PTR(mr, ibv_reg_mr(pd, addr, len, access));
}

static inline int shim_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr, struct ibv_ah **ah, int64_t *ns)
{
	SHIM_PTR(ah, ibv_create_ah(pd, attr));
}

static inline int shim_create_comp_channel(struct ibv_context *ctx, struct ibv_comp_channel **ch, int64_t *ns)
{
	SHIM_PTR(ch, ibv_create_comp_channel(ctx));
}

static inline int shim_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event, int64_t *ns)
{
	SHIM_INT(ibv_get_async_event(ctx, event));
}

static inline void shim_ack_async_event(struct ibv_async_event *event, int64_t *ns)
{
	SHIM_TIMED(ibv_ack_async_event(event));
}

static inline int shim_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, uintptr_t *context, int64_t *ns)
{
	void *ctx = NULL;
	int ret;

	SHIM_TIMED(ret = ibv_get_cq_event(ch, cq, &ctx));
	*context = (uintptr_t)ctx;
	return shim_errno(ret);
}

static inline void shim_ack_cq_events(struct ibv_cq *cq, unsigned int n, int64_t *ns)
{
	SHIM_TIMED(ibv_ack_cq_events(cq, n));
}

static inline int shim_create_cq(struct ibv_context *ctx, int cqe, uintptr_t context, struct ibv_comp_channel *ch,
				 int vector, struct ibv_cq **cq, int64_t *ns)
{
	SHIM_PTR(cq, ibv_create_cq(ctx, cqe, (void *)context, ch, vector));
}

static inline int shim_create_cq_ex(struct ibv_context *ctx, int cqe, uintptr_t context, struct ibv_comp_channel *ch,
				    int vector, uint64_t fields, struct ibv_cq **cq, int64_t *ns)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = cqe,
		.cq_context = (void *)context,
		.channel = ch,
		.comp_vector = vector,
		.wc_flags = fields,
	};
	struct ibv_cq_ex *ex;

	SHIM_TIMED(ex = ibv_create_cq_ex(ctx, &init));
	*cq = ex ? ibv_cq_ex_to_cq(ex) : NULL;
	return shim_null_errno(ex);
}

static inline int shim_resize_cq(struct ibv_cq *cq, int cqe, int64_t *ns)
{
	SHIM_INT(ibv_resize_cq(cq, cqe));
}

static inline int shim_req_notify_cq(struct ibv_cq *cq, int solicited_only, int64_t *ns)
{
	SHIM_INT(ibv_req_notify_cq(cq, solicited_only));
}

static inline int shim_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc, int *n, int64_t *ns)
{
	int ret;

	SHIM_TIMED(ret = ibv_poll_cq(cq, max, wc));
	*n = ret < 0 ? 0 : ret;
	return ret < 0 ? shim_errno(ret) : 0;
}

/* Of what failed only the number of the queue pair means something. */
static inline void shim_read_wc(struct ibv_cq_ex *cq, uint64_t fields, struct ibv_wc *wc, uint64_t *timestamp)
{
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	if (fields & IBV_WC_EX_WITH_QP_NUM)
		wc->qp_num = ibv_wc_read_qp_num(cq);
	if (cq->status != IBV_WC_SUCCESS)
		return;
	if (fields & IBV_WC_EX_WITH_BYTE_LEN)
		wc->byte_len = ibv_wc_read_byte_len(cq);
	if (fields & IBV_WC_EX_WITH_SRC_QP)
		wc->src_qp = ibv_wc_read_src_qp(cq);
	if (fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		*timestamp = ibv_wc_read_completion_ts(cq);
}

/* Whether the library can read what it said it could. */
static inline int shim_reads(const struct ibv_cq_ex *cq, uint64_t fields)
{
	return cq->start_poll && cq->next_poll && cq->end_poll &&
	       (!(fields & IBV_WC_EX_WITH_QP_NUM) || cq->read_qp_num) &&
	       (!(fields & IBV_WC_EX_WITH_BYTE_LEN) || cq->read_byte_len) &&
	       (!(fields & IBV_WC_EX_WITH_SRC_QP) || cq->read_src_qp) &&
	       (!(fields & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) || cq->read_completion_ts);
}

static inline int shim_poll_batch(struct ibv_cq_ex *cq, uint64_t fields, int max, struct ibv_wc *wc,
				  uint64_t *timestamps, int *n)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int ret = ibv_start_poll(cq, &attr);

	if (ret)
		return ret;
	do {
		shim_read_wc(cq, fields, &wc[*n], &timestamps[*n]);
	} while (++*n < max && !(ret = ibv_next_poll(cq)));
	ibv_end_poll(cq);
	return ret;
}

/* An extended completion queue; none of its functions sets errno. */
static inline int shim_poll_cq_ex(struct ibv_cq *cq, uint64_t fields, int max, struct ibv_wc *wc, uint64_t *timestamps,
				  int *n, int64_t *ns)
{
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)cq; /* as ibv_cq_ex_to_cq has it */
	int ret;

	if (!shim_reads(ex, fields))
		return ENOSYS;
	SHIM_TIMED(ret = shim_poll_batch(ex, fields, max, wc, timestamps, n));
	return ret == ENOENT || ret == -ENOENT ? 0 : shim_errno(ret);
}

static inline int shim_create_srq(struct ibv_pd *pd, struct ibv_srq_attr *attr, struct ibv_srq **srq, int64_t *ns)
{
	struct ibv_srq_init_attr init = { .attr = *attr };

	SHIM_TIMED(*srq = ibv_create_srq(pd, &init));
	*attr = init.attr;
	return shim_null_errno(*srq);
}

static inline int shim_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int64_t *ns)
{
	SHIM_INT(ibv_query_srq(srq, attr));
}

static inline int shim_set_srq_limit(struct ibv_srq *srq, uint32_t limit, int64_t *ns)
{
	struct ibv_srq_attr attr = { .srq_limit = limit };

	SHIM_INT(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
}

/* The sizes of the QP are written to init. */
static inline int shim_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init, struct ibv_qp **qp, int64_t *ns)
{
	SHIM_PTR(qp, ibv_create_qp(pd, init));
}

/*
 * Of SRD, libefa's own type of queue pair, nothing is known here when the exporter is
 * built: its function is looked up in the library that serves the device, once that is
 * loaded. Another copy of libefa would refuse the device (is_efa_dev in rdma-core,
 * providers/efa/efa.c).
 */

/* The file of the library that serves a device; NULL if that cannot be told. */
static inline const char *shim_library(const struct ibv_context *ctx)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)ctx->ops.poll_cq, &info) ? info.dli_fname : NULL;
}

/* struct efadv_qp_init_attr of rdma-core v26, providers/efa/efadv.h. Later ones have more behind it. */
struct shim_efa_qp {
	uint64_t comp_mask;
	uint32_t driver_qp_type; /* EFADV_QP_DRIVER_TYPE_SRD is 0 */
	uint8_t reserved[4];
};

typedef struct ibv_qp *(*shim_efa_create_qp)(struct ibv_context *, struct ibv_qp_init_attr_ex *, struct shim_efa_qp *,
					     uint32_t);

/* efadv_create_qp_ex of a library that is loaded; NULL if it has none. */
static inline shim_efa_create_qp shim_efa(const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	shim_efa_create_qp create;

	if (!handle)
		return NULL;
	create = (shim_efa_create_qp)(uintptr_t)dlvsym(handle, "efadv_create_qp_ex", "EFA_1.1");
	dlclose(handle); /* it stays loaded: libibverbs has it open */
	return create;
}

static inline int shim_create_srd(shim_efa_create_qp create, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				  struct ibv_qp **qp, int64_t *ns)
{
	struct shim_efa_qp srd = { 0 };
	struct ibv_qp_init_attr_ex init = {
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = IBV_QPT_DRIVER,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	SHIM_TIMED(*qp = create(pd->context, &init, &srd, sizeof(srd)));
	attr->cap = init.cap;
	return shim_null_errno(*qp);
}

static inline int shim_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init, int64_t *ns)
{
	SHIM_INT(ibv_query_qp(qp, attr, IBV_QP_STATE | IBV_QP_CAP, init));
}

static inline int shim_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, int64_t *ns)
{
	SHIM_INT(ibv_modify_qp(qp, attr, mask));
}

struct shim_send {
	uint64_t id;
	unsigned int flags;
	struct ibv_ah *ah; /* of datagrams, as what follows */
	uint32_t remote_qpn;
	uint32_t remote_qkey;
};

static inline struct ibv_send_wr shim_send_wr(const struct ibv_qp *qp, const struct shim_send *s,
					      struct ibv_sge *sges, int nsge)
{
	struct ibv_send_wr wr = {
		.wr_id = s->id,
		.sg_list = sges,
		.num_sge = nsge,
		.opcode = IBV_WR_SEND,
		.send_flags = s->flags,
	};

	/* IBV_QPT_DRIVER: SRD is the only one that is created here. */
	if (qp->qp_type == IBV_QPT_UD || qp->qp_type == IBV_QPT_DRIVER) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->remote_qpn;
		wr.wr.ud.remote_qkey = s->remote_qkey;
	}
	return wr;
}

static inline int shim_post_send(struct ibv_qp *qp, const struct shim_send *s, struct ibv_sge *sges, int nsge, int64_t *ns)
{
	struct ibv_send_wr *bad = NULL;
	struct ibv_send_wr wr = shim_send_wr(qp, s, sges, nsge);

	SHIM_INT(ibv_post_send(qp, &wr, &bad));
}

static inline int shim_post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge *sges, int nsge, int64_t *ns)
{
	struct ibv_recv_wr *bad = NULL;
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sges, .num_sge = nsge };

	SHIM_INT(ibv_post_recv(qp, &wr, &bad));
}

static inline int shim_post_srq_recv(struct ibv_srq *srq, uint64_t id, struct ibv_sge *sges, int nsge, int64_t *ns)
{
	struct ibv_recv_wr *bad = NULL;
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sges, .num_sge = nsge };

	SHIM_INT(ibv_post_srq_recv(srq, &wr, &bad));
}

#endif
