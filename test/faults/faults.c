/*
 * A library to be loaded with LD_PRELOAD that makes verbs of libibverbs fail,
 * hang, crash, or tell other sizes than there are, on real devices:
 *
 *	cc -shared -fPIC -O2 -Wall -Wextra -Werror -o libfaults.so faults.c
 *	echo 'ibv_create_qp errno=ENOMEM after=2 times=1' >faults
 *	LD_PRELOAD=$PWD/libfaults.so IBV_FAULTS=$PWD/faults ibv_rc_pingpong -d rxe0 -g 1
 *
 * IBV_FAULTS names a file. A process reads it when it first calls a verb, so each
 * process finds what is in it then, and one that calls no verb is left alone, as
 * is every process without the variable. The file may be a FIFO: the process waits
 * in that first verb until it was written. A file that cannot be read or
 * understood ends the process with status 2 and a message, so that no test passes
 * for a typing error.
 *
 * A line is a verb, a fault and options, in any order after the verb:
 *
 *	errno=NAME	the verb does nothing, and fails as its man page says it does;
 *			with errno=none it sets no errno, as libraries do that forget
 *	hang		the verb does nothing, and never returns; a signal can end the
 *			process
 *	crash		the verb dies of SIGSEGV
 *	drop		the verb does nothing and says that it worked: an arming is
 *			forgotten, a request is lost, an acknowledgement is left out, an
 *			object stays. ibv_get_cq_event takes and loses the events that
 *			there are, and goes on to wait for the next one
 *	delay=MS	the verb is called MS milliseconds later
 *	keep while=FILE	of ibv_open_device: beside the process there is another one from
 *			then on, of a session of its own, that has the device open, and
 *			nothing else, for as long as the file exists and for no longer
 *			than KEEP_SECONDS. When the process ends, what it did not
 *			destroy is still there
 *	short		the verb works, and tells of sizes that are 1 less than what was
 *			asked for, or, of a query, less than they are. Only the numbers
 *			that the caller is told are changed
 *
 *	after=N		the first N calls of the process are left alone
 *	times=N		no more than N calls are affected
 *
 * Empty lines and what follows a # do not count. Of several lines for one verb the
 * first that applies to a call acts on it; delay and keep let others act as well.
 *
 * IBV_FAULTS_LOG names a file to which is appended, with the process ID before
 * it, "loaded" and the number of lines when a process has read its faults, and
 * each line when it acts for the first time in a process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The header redirects these to others; here they are defined themselves. */
#undef ibv_query_port
#undef ibv_reg_mr

#define KEEP_SECONDS 600

#define MAX_RULES 64
#define MAX_LINE 512
#define MAX_CONTEXTS 16

enum fault { NO_FAULT, FAIL, HANG, CRASH, SHORT, DROP, DELAY, KEEP };

/* What a verb can do. */
enum { CAN_DROP = 1, CAN_KEEP = 2, CAN_SHORT = 4, CANNOT_FAIL = 8 };

#define VERBS(X)                                     \
	X(ibv_get_device_list, 0)                    \
	X(ibv_open_device, CAN_KEEP)                 \
	X(ibv_close_device, 0)                       \
	X(ibv_query_device, 0)                       \
	X(ibv_query_port, 0)                         \
	X(ibv_query_gid_table, 0)                    \
	X(ibv_query_pkey, 0)                         \
	X(ibv_alloc_pd, 0)                           \
	X(ibv_dealloc_pd, CAN_DROP)                  \
	X(ibv_reg_mr, 0)                             \
	X(ibv_dereg_mr, CAN_DROP)                    \
	X(ibv_create_ah, 0)                          \
	X(ibv_destroy_ah, CAN_DROP)                  \
	X(ibv_create_comp_channel, 0)                \
	X(ibv_destroy_comp_channel, CAN_DROP)        \
	X(ibv_create_cq, CAN_SHORT)                  \
	X(ibv_destroy_cq, CAN_DROP)                  \
	X(ibv_poll_cq, 0)                            \
	X(ibv_req_notify_cq, CAN_DROP)               \
	X(ibv_get_cq_event, CAN_DROP)                \
	X(ibv_ack_cq_events, CAN_DROP | CANNOT_FAIL) \
	X(ibv_create_srq, CAN_SHORT)                 \
	X(ibv_query_srq, CAN_SHORT)                  \
	X(ibv_destroy_srq, CAN_DROP)                 \
	X(ibv_post_srq_recv, CAN_DROP)               \
	X(ibv_create_qp, CAN_SHORT)                  \
	X(ibv_query_qp, CAN_SHORT)                   \
	X(ibv_modify_qp, CAN_DROP)                   \
	X(ibv_destroy_qp, CAN_DROP)                  \
	X(ibv_post_send, CAN_DROP)                   \
	X(ibv_post_recv, CAN_DROP)

enum verb {
#define X(name, can) V_##name,
	VERBS(X)
#undef X
	VERB_COUNT
};

static const struct {
	const char *name;
	int can;
} verbs[VERB_COUNT] = {
#define X(name, can) { #name, can },
	VERBS(X)
#undef X
};

struct rule {
	enum verb verb;
	enum fault fault;
	long value; /* the errno, or the milliseconds */
	long after;
	long times; /* -1 for no end */
	char keep[MAX_LINE];
	char text[MAX_LINE];
	atomic_long calls;
};

static struct rule rules[MAX_RULES];
static int nrules;
static const char *log_file;

__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *format, ...)
{
	va_list args;

	fputs("faults: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(2);
}

/* One write for each line, so that those of several processes do not mix. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	char line[MAX_LINE + 64];
	va_list args;
	int fd, n, m;

	if (!log_file)
		return;
	n = snprintf(line, sizeof(line), "%d ", (int)getpid());
	va_start(args, format);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (m > (int)sizeof(line) - n - 2)
		m = (int)sizeof(line) - n - 2;
	n += m;
	line[n++] = '\n';
	fd = open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		give_up("%s: %m", log_file);
	close(fd);
}

static long number(const char *line, const char *text)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < 0)
		give_up("%s: \"%s\" is no number", line, text);
	return n;
}

static int errno_named(const char *name)
{
	int e;

	for (e = 1; e < 4096; e++) {
		const char *known = strerrorname_np(e);

		if (known && !strcmp(known, name))
			return e;
	}
	return 0;
}

static void set_fault(struct rule *r, enum fault fault, long value)
{
	if (r->fault != NO_FAULT)
		give_up("%s: one fault in a line", r->text);
	r->fault = fault;
	r->value = value;
}

/* Returns which of the names it is, or n. */
static int index_of(const char *const *names, int n, const char *name, size_t length)
{
	int i;

	for (i = 0; i < n && (strlen(names[i]) != length || strncmp(names[i], name, length)); i++)
		;
	return i;
}

static enum verb verb_named(const struct rule *r, const char *name)
{
	int v;

	for (v = 0; v < VERB_COUNT && strcmp(verbs[v].name, name); v++)
		;
	if (v == VERB_COUNT)
		give_up("%s: no verb \"%s\"", r->text, name);
	return (enum verb)v;
}

static void parse_word(struct rule *r, char *word)
{
	/* Those that take no value; "" is none of them. */
	static const char *const faults[] = { [HANG] = "hang", [CRASH] = "crash", [DROP] = "drop", [KEEP] = "keep",
					      [SHORT] = "short", [NO_FAULT] = "", [FAIL] = "", [DELAY] = "" };
	char *value;
	int i;

	value = strchr(word, '=');
	if (value)
		*value++ = '\0';
	if (!strcmp(word, "errno") && value) {
		int e = errno_named(value);

		if (!e && strcmp(value, "none"))
			give_up("%s: no errno \"%s\"", r->text, value);
		set_fault(r, FAIL, e);
	} else if (!value && (i = index_of(faults, KEEP + 1, word, strlen(word))) <= KEEP) {
		set_fault(r, (enum fault)i, 0);
	} else if (!strcmp(word, "delay") && value) {
		set_fault(r, DELAY, number(r->text, value));
	} else if (!strcmp(word, "while") && value && *value) {
		snprintf(r->keep, sizeof(r->keep), "%s", value);
	} else if (!strcmp(word, "after") && value) {
		r->after = number(r->text, value);
	} else if (!strcmp(word, "times") && value) {
		r->times = number(r->text, value);
	} else {
		give_up("%s: \"%s\" is not known", r->text, word);
	}
}

static void parse(const char *text)
{
	struct rule *r = &rules[nrules];
	char line[MAX_LINE], *save = NULL, *word;
	int can;

	snprintf(line, sizeof(line), "%s", text);
	word = strtok_r(line, " \t", &save);
	if (!word)
		return;
	if (nrules == MAX_RULES)
		give_up("more than %d lines", MAX_RULES);
	snprintf(r->text, sizeof(r->text), "%s", text);
	r->verb = verb_named(r, word);
	r->times = -1;
	while ((word = strtok_r(NULL, " \t", &save)))
		parse_word(r, word);
	if (r->fault == NO_FAULT || (r->fault == KEEP) != (r->keep[0] != '\0'))
		give_up("%s: no whole fault", text);
	can = verbs[r->verb].can;
	if ((r->fault == DROP && !(can & CAN_DROP)) || (r->fault == KEEP && !(can & CAN_KEEP)) ||
	    (r->fault == SHORT && !(can & CAN_SHORT)) || (r->fault == FAIL && can & CANNOT_FAIL))
		give_up("%s: not with this verb", text);
	nrules++;
}

static void load(void)
{
	const char *file = getenv("IBV_FAULTS");
	char line[MAX_LINE];
	FILE *f;

	if (!file || !*file)
		return;
	log_file = getenv("IBV_FAULTS_LOG");
	if (log_file && !*log_file)
		log_file = NULL;
	f = fopen(file, "re");
	if (!f)
		give_up("%s: %m", file);
	while (fgets(line, sizeof(line), f)) {
		if (!strchr(line, '\n') && !feof(f))
			give_up("%s: a line is too long", file);
		line[strcspn(line, "#\n")] = '\0';
		parse(line);
	}
	if (ferror(f))
		give_up("%s: %m", file);
	fclose(f);
	note("loaded %d", nrules);
}

static void wait_ms(long ms)
{
	struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* Returns whether the rule acts on this call of its verb. */
static bool acts(struct rule *r)
{
	long call = atomic_fetch_add(&r->calls, 1);

	if (call < r->after || (r->times >= 0 && call - r->after >= r->times))
		return false;
	if (call == r->after)
		note("%s", r->text);
	return true;
}

/*
 * Is called at the begin of each verb. Returns the rule that the verb has to act
 * by, which is one of FAIL, SHORT and DROP, or NULL if it is to work.
 */
static const struct rule *faulty(enum verb v)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno, i;

	pthread_once(&once, load);
	for (i = 0; i < nrules; i++) {
		struct rule *r = &rules[i];

		if (r->verb != v || r->fault == KEEP || !acts(r))
			continue;
		switch (r->fault) {
		case DELAY:
			wait_ms(r->value);
			continue;
		case HANG:
			for (;;)
				pause();
		case CRASH: {
			volatile int *volatile nowhere = NULL;

			*nowhere = 0;
			_exit(2);
		}
		default:
			errno = saved;
			return r;
		}
	}
	errno = saved;
	return NULL;
}

/*
 * Starts the process that keeps the device open. It is nobody's child, and of no
 * process group that anybody knows. _Fork because other threads may hold locks.
 */
static void keep(const struct rule *r, int fd)
{
	sigset_t all, before;
	pid_t pid;
	int i;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = _Fork();
	if (pid < 0)
		give_up("fork: %m");
	if (pid == 0) {
		setsid();
		pid = _Fork();
		if (pid != 0)
			_exit(pid < 0);
		prctl(PR_SET_NAME, "faults-keeper");
		if (fd > 0)
			close_range(0, (unsigned int)fd - 1, 0);
		close_range((unsigned int)fd + 1, ~0U, 0);
		for (i = 0; i < KEEP_SECONDS * 50 && access(r->keep, F_OK) == 0; i++)
			wait_ms(20);
		_exit(0);
	}
	while (waitpid(pid, &i, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(i) || WEXITSTATUS(i))
		give_up("%s: there is no second process", r->text);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * The function that would have been called. dlsym would return the oldest version
 * of it.
 */
static void *next(const char *name, const char *version)
{
	void *f = dlvsym(RTLD_NEXT, name, version);

	if (!f)
		give_up("there is no %s of version %s", name, version);
	return f;
}

#define REAL(name, version)                                             \
	({                                                              \
		static __typeof__(&name) real;                          \
		if (!real)                                              \
			real = (__typeof__(&name))next(#name, version); \
		real;                                                   \
	})

/* For a verb that fails with NULL and errno. */
#define OR_NULL(name)                               \
	const struct rule *rule = faulty(V_##name); \
	if (rule && rule->fault == FAIL) {          \
		errno = (int)rule->value;           \
		return NULL;                        \
	}

/* What a verb returns that fails with errno. */
static int minus_one(const struct rule *r)
{
	errno = (int)r->value;
	return -1;
}

/* What a verb returns that fails with an errno, or, with 0, without one. */
static int failed(long value)
{
	if (value)
		return (int)value;
	errno = 0;
	return -1;
}

/* For a verb that returns an errno. */
#define OR_ERRNO(name)                              \
	const struct rule *rule = faulty(V_##name); \
	if (rule && rule->fault == FAIL)            \
		return failed(rule->value);         \
	if (rule && rule->fault == DROP)            \
		return 0

/* For a verb that posts, and says besides at which request it stopped. */
#define OR_BAD(name, wr, bad)                       \
	const struct rule *rule = faulty(V_##name); \
	if (rule && rule->fault == FAIL) {          \
		*(bad) = (wr);                      \
		return failed(rule->value);         \
	}                                           \
	if (rule && rule->fault == DROP)            \
		return 0

/* What the caller is told of a size, given what was asked for. */
static uint32_t told(const struct rule *r, uint32_t asked, uint32_t given)
{
	uint32_t n = asked < given ? asked : given;

	if (!r || r->fault != SHORT)
		return given;
	return n ? n - 1 : 0;
}

/* The same of each size of a queue pair, and of an SRQ. */
static void tell_qp(const struct rule *r, const struct ibv_qp_cap *asked, struct ibv_qp_cap *given)
{
	given->max_send_wr = told(r, asked->max_send_wr, given->max_send_wr);
	given->max_recv_wr = told(r, asked->max_recv_wr, given->max_recv_wr);
	given->max_send_sge = told(r, asked->max_send_sge, given->max_send_sge);
	given->max_recv_sge = told(r, asked->max_recv_sge, given->max_recv_sge);
	given->max_inline_data = told(r, asked->max_inline_data, given->max_inline_data);
}

static void tell_srq(const struct rule *r, const struct ibv_srq_attr *asked, struct ibv_srq_attr *given)
{
	given->max_wr = told(r, asked->max_wr, given->max_wr);
	given->max_sge = told(r, asked->max_sge, given->max_sge);
}

/*
 * Some verbs are inline functions that go through the tables of an opened device.
 * These are what was there.
 */
static struct context {
	_Atomic(struct ibv_context *) ctx;
	struct ibv_context_ops ops;
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
} contexts[MAX_CONTEXTS];

static struct context *context_of(const struct ibv_context *ctx)
{
	int i;

	for (i = 0; i < MAX_CONTEXTS; i++)
		if (atomic_load_explicit(&contexts[i].ctx, memory_order_acquire) == ctx)
			return &contexts[i];
	give_up("a device that was not opened here, or more than %d of them", MAX_CONTEXTS);
}

static int faulty_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	const struct rule *rule = faulty(V_ibv_poll_cq);

	if (rule) {
		errno = (int)rule->value;
		return -errno;
	}
	return context_of(cq->context)->ops.poll_cq(cq, n, wc);
}

static int faulty_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	OR_ERRNO(ibv_req_notify_cq);
	return context_of(cq->context)->ops.req_notify_cq(cq, solicited_only);
}

static int faulty_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	OR_BAD(ibv_post_send, wr, bad);
	return context_of(qp->context)->ops.post_send(qp, wr, bad);
}

static int faulty_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	OR_BAD(ibv_post_recv, wr, bad);
	return context_of(qp->context)->ops.post_recv(qp, wr, bad);
}

static int faulty_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	OR_BAD(ibv_post_srq_recv, wr, bad);
	return context_of(srq->context)->ops.post_srq_recv(srq, wr, bad);
}

static int faulty_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	OR_ERRNO(ibv_query_port);
	return context_of(ctx)->query_port(ctx, port, attr, size);
}

static void patch(struct ibv_context *ctx)
{
	struct context *c = context_of(NULL);
	struct verbs_context *v = verbs_get_ctx_op(ctx, query_port);

	c->ops = ctx->ops;
	ctx->ops.poll_cq = faulty_poll_cq;
	ctx->ops.req_notify_cq = faulty_req_notify_cq;
	ctx->ops.post_send = faulty_post_send;
	ctx->ops.post_recv = faulty_post_recv;
	ctx->ops.post_srq_recv = faulty_post_srq_recv;
	if (v) {
		c->query_port = v->query_port;
		v->query_port = faulty_query_port;
	}
	atomic_store_explicit(&c->ctx, ctx, memory_order_release);
}

/* The functions of the same names of libibverbs. */

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	struct ibv_context *ctx;
	int i;

	OR_NULL(ibv_open_device);
	ctx = REAL(ibv_open_device, "IBVERBS_1.1")(device);
	if (!ctx)
		return NULL;
	pthread_mutex_lock(&opening);
	patch(ctx);
	pthread_mutex_unlock(&opening);
	for (i = 0; i < nrules; i++)
		if (rules[i].fault == KEEP && acts(&rules[i]))
			keep(&rules[i], ctx->cmd_fd);
	return ctx;
}

int ibv_close_device(struct ibv_context *ctx)
{
	const struct rule *rule = faulty(V_ibv_close_device);
	struct context *c = context_of(ctx);
	int ret;

	if (rule)
		return minus_one(rule);
	/* Before its address can be that of another one. */
	atomic_store_explicit(&c->ctx, NULL, memory_order_release);
	ret = REAL(ibv_close_device, "IBVERBS_1.1")(ctx);
	if (ret)
		atomic_store_explicit(&c->ctx, ctx, memory_order_release);
	return ret;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max, uint32_t flags,
			     size_t size)
{
	const struct rule *rule = faulty(V_ibv_query_gid_table);

	if (rule)
		return -rule->value;
	return REAL(_ibv_query_gid_table, "IBVERBS_1.11")(ctx, entries, max, flags, size);
}

/* Which of the two is called depends on what the compiler knows of access. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	OR_NULL(ibv_reg_mr);
	return REAL(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, addr, length, iova, access);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	struct ibv_cq *cq;

	OR_NULL(ibv_create_cq);
	cq = REAL(ibv_create_cq, "IBVERBS_1.1")(ctx, cqe, cq_context, channel, comp_vector);
	if (cq)
		cq->cqe = (int)told(rule, (uint32_t)cqe, (uint32_t)cq->cqe);
	return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	const struct rule *rule = faulty(V_ibv_get_cq_event);
	int ret;

	if (rule && rule->fault == FAIL)
		return minus_one(rule);
	for (;;) {
		ret = REAL(ibv_get_cq_event, "IBVERBS_1.1")(channel, cq, cq_context);
		if (ret || !rule)
			return ret;
		REAL(ibv_ack_cq_events, "IBVERBS_1.1")(*cq, 1);
	}
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	if (!faulty(V_ibv_ack_cq_events))
		REAL(ibv_ack_cq_events, "IBVERBS_1.1")(cq, n);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr asked = init->attr;
	struct ibv_srq *srq;

	OR_NULL(ibv_create_srq);
	srq = REAL(ibv_create_srq, "IBVERBS_1.1")(pd, init);
	if (srq)
		tell_srq(rule, &asked, &init->attr);
	return srq;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *size)
{
	int ret;

	OR_ERRNO(ibv_query_srq);
	ret = REAL(ibv_query_srq, "IBVERBS_1.1")(srq, size);
	if (!ret)
		tell_srq(rule, size, size);
	return ret;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap asked = init->cap;
	struct ibv_qp *qp;

	OR_NULL(ibv_create_qp);
	qp = REAL(ibv_create_qp, "IBVERBS_1.1")(pd, init);
	if (qp)
		tell_qp(rule, &asked, &init->cap);
	return qp;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	int ret;

	OR_ERRNO(ibv_query_qp);
	ret = REAL(ibv_query_qp, "IBVERBS_1.1")(qp, attr, mask, init);
	if (!ret) {
		tell_qp(rule, &attr->cap, &attr->cap);
		tell_qp(rule, &init->cap, &init->cap);
	}
	return ret;
}

/* Those of whose calls nothing need be known. */
#define PLAIN(type, fails, name, version, parameters, arguments) \
	type name parameters                                     \
	{                                                        \
		fails(name);                                     \
		return REAL(name, version) arguments;            \
	}

PLAIN(struct ibv_device **, OR_NULL, ibv_get_device_list, "IBVERBS_1.1", (int *n), (n))
PLAIN(int, OR_ERRNO, ibv_query_device, "IBVERBS_1.1", (struct ibv_context *ctx, struct ibv_device_attr *attr),
      (ctx, attr))
/* Called only for providers that do not have it in their table. */
PLAIN(int, OR_ERRNO, ibv_query_port, "IBVERBS_1.1",
      (struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr), (ctx, port, attr))
PLAIN(int, OR_ERRNO, ibv_query_pkey, "IBVERBS_1.1",
      (struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey), (ctx, port, index, pkey))
PLAIN(struct ibv_pd *, OR_NULL, ibv_alloc_pd, "IBVERBS_1.1", (struct ibv_context *ctx), (ctx))
PLAIN(int, OR_ERRNO, ibv_dealloc_pd, "IBVERBS_1.1", (struct ibv_pd *pd), (pd))
PLAIN(struct ibv_mr *, OR_NULL, ibv_reg_mr, "IBVERBS_1.1",
      (struct ibv_pd *pd, void *addr, size_t length, int access), (pd, addr, length, access))
PLAIN(int, OR_ERRNO, ibv_dereg_mr, "IBVERBS_1.1", (struct ibv_mr *mr), (mr))
PLAIN(struct ibv_ah *, OR_NULL, ibv_create_ah, "IBVERBS_1.1", (struct ibv_pd *pd, struct ibv_ah_attr *attr),
      (pd, attr))
PLAIN(int, OR_ERRNO, ibv_destroy_ah, "IBVERBS_1.1", (struct ibv_ah *ah), (ah))
PLAIN(struct ibv_comp_channel *, OR_NULL, ibv_create_comp_channel, "IBVERBS_1.0", (struct ibv_context *ctx), (ctx))
PLAIN(int, OR_ERRNO, ibv_destroy_comp_channel, "IBVERBS_1.0", (struct ibv_comp_channel *channel), (channel))
PLAIN(int, OR_ERRNO, ibv_destroy_cq, "IBVERBS_1.1", (struct ibv_cq *cq), (cq))
PLAIN(int, OR_ERRNO, ibv_destroy_srq, "IBVERBS_1.1", (struct ibv_srq *srq), (srq))
PLAIN(int, OR_ERRNO, ibv_modify_qp, "IBVERBS_1.1", (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask),
      (qp, attr, mask))
PLAIN(int, OR_ERRNO, ibv_destroy_qp, "IBVERBS_1.1", (struct ibv_qp *qp), (qp))
