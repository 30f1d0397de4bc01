/* SPDX-License-Identifier: Apache-2.0 */
/*
 * climb: how many objects of a type a device gives to one process. It was written from
 * the manual pages and shares no code with the exporter, so that what its command ceiling
 * finds can be held against it. By hand:
 *
 *	cc -O2 -o climb climb.c -libverbs
 *	./climb rxe0 qp 60
 *
 * It creates the smallest objects of the type (cq, qp, srq, mr, pd or ah) until one is
 * refused, or for so many seconds, destroys them, and prints how many there were, and the
 * errno, which is 0 if the time was over or the library set none.
 */
#include <sys/mman.h>
#include <time.h>

#include "common.h"

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_ah_attr to = { .port_num = 1 };

/* An address handle to the port itself, by its GID 1. */
static void find_address(void)
{
	to.is_global = 1;
	to.grh.sgid_index = 1;
	to.grh.hop_limit = 64;
	if (ibv_query_gid(ctx, 1, 1, &to.grh.dgid))
		die("ibv_query_gid", errno);
}

static void *create_cq(void) { return ibv_create_cq(ctx, 1, NULL, NULL, 0); }
static int destroy_cq(void *o) { return ibv_destroy_cq(o); }

static void *create_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	return ibv_create_qp(pd, &init);
}
static int destroy_qp(void *o) { return ibv_destroy_qp(o); }

static void *create_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}
static int destroy_srq(void *o) { return ibv_destroy_srq(o); }

static void *reg_mr(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;
	int err;

	if (page == MAP_FAILED)
		return NULL;
	mr = ibv_reg_mr(pd, page, 1, IBV_ACCESS_LOCAL_WRITE);
	if (!mr) {
		err = errno;
		munmap(page, 4096);
		errno = err;
	}
	return mr;
}
static int dereg_mr(void *o)
{
	void *page = ((struct ibv_mr *)o)->addr;
	int err = ibv_dereg_mr(o);

	munmap(page, 4096);
	return err;
}

static void *alloc_pd(void) { return ibv_alloc_pd(ctx); }
static int dealloc_pd(void *o) { return ibv_dealloc_pd(o); }
static void *create_ah(void) { return ibv_create_ah(pd, &to); }
static int destroy_ah(void *o) { return ibv_destroy_ah(o); }

static const struct type {
	const char *name;
	void *(*create)(void);
	int (*destroy)(void *);
} types[] = {
	{ "cq", create_cq, destroy_cq },  { "qp", create_qp, destroy_qp },    { "srq", create_srq, destroy_srq },
	{ "mr", reg_mr, dereg_mr },	  { "pd", alloc_pd, dealloc_pd },     { "ah", create_ah, destroy_ah },
	{ NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct type *t = types;
	size_t n = 0, room = 0, i;
	void **objects = NULL, *o;
	time_t until;
	int err = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: climb device cq|qp|srq|mr|pd|ah seconds\n");
		return 2;
	}
	while (t->name && strcmp(t->name, argv[2]))
		t++;
	if (!t->name)
		die(argv[2], EINVAL);
	ctx = open_device(argv[1]);
	if (t->create != create_cq && t->create != alloc_pd)
		pd = must(ibv_alloc_pd(ctx), "ibv_alloc_pd");
	if (t->create == create_qp)
		cq = must(ibv_create_cq(ctx, 1, NULL, NULL, 0), "ibv_create_cq");
	if (t->create == create_ah)
		find_address();
	until = time(NULL) + atoi(argv[3]);
	while (time(NULL) < until) {
		if (n == room) {
			room = room ? 2 * room : 1024;
			objects = must(realloc(objects, room * sizeof(*objects)), "realloc");
		}
		errno = 0; /* not all libraries set it */
		o = t->create();
		if (!o) {
			err = errno;
			break;
		}
		objects[n++] = o;
	}
	for (i = n; i-- > 0;)
		must0(t->destroy(objects[i]), "destroy");
	if (cq)
		must0(ibv_destroy_cq(cq), "ibv_destroy_cq");
	if (pd)
		must0(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
	must0(ibv_close_device(ctx), "ibv_close_device");
	printf("%zu %d\n", n, err);
	return 0;
}
