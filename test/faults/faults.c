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
 * A line is a verb, a fault, conditions and options, in any order after the verb:
 *
 *	errno=NAME	the verb does nothing, and fails as its man page says it does;
 *			with errno=none it sets no errno, as libraries do that forget,
 *			and with errno=-NAME it returns the errno with the wrong sign
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
 *	SIZE=FIGURE	the verb works, and tells that a size, such as max_recv_wr, is
 *			this: a number; what was asked for (asked), and the least power
 *			of two that is no less (pow2); what there really is by what the
 *			verb tells (given) or by the query (queried); each but the
 *			number with +N or -N behind it. A line may have several. Only
 *			the numbers that the caller is told are changed
 *	SIZE<=N		the verb works, but the device is asked for no more than N
 *	short, short=N	the verb works, and tells of sizes that are N (1) less than what
 *			was asked for, or, of a query, less than they are
 *
 *	SIZE>N		only calls that ask for more than N
 *	type=T[,T...]	only queue pairs of these types: RC, UC, UD, RAW_PACKET
 *	state=S[,S...]	only queue pairs that are in these states: RESET, INIT, ...
 *	ready=no	only queue pairs that have not been in RTS since they were in
 *			RESET; with ready=yes, only those that have
 *	srq, channel	only queue pairs with an SRQ; only CQs with a channel
 *	solicited	only armings for solicited completions, and solicited sends
 *	before=VERB	only calls before the process's first one of that verb
 *
 *	after=N		the first N calls of the process are left alone
 *	times=N		no more than N calls are affected
 *
 * Calls that a line's conditions leave out do not count for it.
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
#include <stddef.h>
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
#define MAX_READY 1024

enum fault { NO_FAULT, FAIL, HANG, CRASH, SIZE, DROP, DELAY, KEEP };

/* The sizes that verbs are asked for or tell, by the names of their fields. */
#define QP_SIZES(X) X(max_send_wr) X(max_recv_wr) X(max_send_sge) X(max_recv_sge) X(max_inline_data)
#define SRQ_SIZES(X) X(max_wr) X(max_sge) X(srq_limit)
#define SIZES(X) X(cqe) X(comp_vector) SRQ_SIZES(X) QP_SIZES(X) X(transport_type)

enum size {
#define X(name) S_##name,
	SIZES(X)
#undef X
	SIZE_COUNT
};

static const char *const sizes[SIZE_COUNT] = {
#define X(name) #name,
	SIZES(X)
#undef X
};

/* The sizes that a verb has, as bits, and what it can do or is known of its calls. */
enum {
#define X(name) + (1 << S_##name)
	OF_QPS = 0 QP_SIZES(X),
	OF_SRQS = 0 SRQ_SIZES(X),
	OF_CQS = (1 << S_cqe) + (1 << S_comp_vector),
	OF_DEVICES = 1 << S_transport_type,
	NOT_SHORT = (1 << S_comp_vector) + (1 << S_srq_limit) + OF_DEVICES,
#undef X
	CAN_DROP = 1 << SIZE_COUNT,
	CAN_KEEP = CAN_DROP << 1,
	CANNOT_FAIL = CAN_DROP << 2,
	HAS_TYPE = CAN_DROP << 3, /* and whether there is an SRQ */
	HAS_STATE = CAN_DROP << 4,
	HAS_CHANNEL = CAN_DROP << 5,
	HAS_SOLICITED = CAN_DROP << 6,
	HAS_QP = HAS_TYPE + HAS_STATE,
};

#define VERBS(X)                                            \
	X(ibv_get_device_list, 0)                           \
	X(ibv_open_device, CAN_KEEP | OF_DEVICES)           \
	X(ibv_close_device, 0)                              \
	X(ibv_query_device, 0)                              \
	X(ibv_query_port, 0)                                \
	X(ibv_query_gid_table, 0)                           \
	X(ibv_query_pkey, 0)                                \
	X(ibv_alloc_pd, 0)                                  \
	X(ibv_dealloc_pd, CAN_DROP)                         \
	X(ibv_reg_mr, 0)                                    \
	X(ibv_dereg_mr, CAN_DROP)                           \
	X(ibv_create_ah, 0)                                 \
	X(ibv_destroy_ah, CAN_DROP)                         \
	X(ibv_create_comp_channel, 0)                       \
	X(ibv_destroy_comp_channel, CAN_DROP)               \
	X(ibv_create_cq, OF_CQS | HAS_CHANNEL)              \
	X(ibv_destroy_cq, CAN_DROP)                         \
	X(ibv_poll_cq, 0)                                   \
	X(ibv_req_notify_cq, CAN_DROP | HAS_SOLICITED)      \
	X(ibv_get_cq_event, CAN_DROP)                       \
	X(ibv_ack_cq_events, CAN_DROP | CANNOT_FAIL)        \
	X(ibv_create_srq, OF_SRQS)                          \
	X(ibv_query_srq, OF_SRQS)                           \
	X(ibv_destroy_srq, CAN_DROP)                        \
	X(ibv_post_srq_recv, CAN_DROP)                      \
	X(ibv_create_qp, OF_QPS | HAS_TYPE)                 \
	X(ibv_query_qp, OF_QPS | HAS_QP)                    \
	X(ibv_modify_qp, CAN_DROP | HAS_QP)                 \
	X(ibv_destroy_qp, CAN_DROP | HAS_QP)                \
	X(ibv_post_send, CAN_DROP | HAS_QP | HAS_SOLICITED) \
	X(ibv_post_recv, CAN_DROP | HAS_QP)                 \
	X(ibv_resize_cq, CAN_DROP)

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

/* What there is to know of a call. */
struct call {
	const struct ibv_qp *qp; /* NULL for none, or a new one */
	enum ibv_qp_type type;
	bool srq, channel, solicited;
	long asked[SIZE_COUNT];
};

/* What a figure starts from; LESSER is the lesser of ASKED and GIVEN. */
enum base { NUMBER, ASKED, POW2, GIVEN, QUERIED, LESSER };

struct rule {
	enum verb verb;
	enum fault fault;
	long value; /* the errno, or the milliseconds */
	long after;
	long times; /* -1 for no end */
	int needs;  /* what the verb must have, of the bits of its can */
	unsigned int types, states; /* sets; 0 for all */
	int ready;		    /* -1 for any */
	bool srq, channel, solicited;
	enum verb before; /* VERB_COUNT for none */
	struct {
		long above, most; /* -1 for none */
		bool told;
		enum base base;
		long plus;
	} sizes[SIZE_COUNT];
	char keep[MAX_LINE];
	char text[MAX_LINE];
	atomic_long calls;
};

static struct rule rules[MAX_RULES];
static int nrules;
static atomic_bool called[VERB_COUNT];
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

/* Returns a set of names as bits, each that of its place in the list. */
static unsigned int set_of(const struct rule *r, const char *const *names, int n, char *text)
{
	unsigned int set = 0;
	char *save = NULL, *word;

	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		int i = index_of(names, n, word, strlen(word));

		if (i == n)
			give_up("%s: \"%s\" is not known", r->text, word);
		set |= 1U << i;
	}
	if (!set)
		give_up("%s: an empty list", r->text);
	return set;
}

static void tell(struct rule *r, int s, enum base base, long plus)
{
	if (r->fault != SIZE)
		set_fault(r, SIZE, 0);
	r->sizes[s].told = true;
	r->sizes[s].base = base;
	r->sizes[s].plus = plus;
}

static void parse_figure(struct rule *r, int s, const char *text)
{
	static const char *const bases[] = { "", "asked", "pow2", "given", "queried" };
	size_t length = strcspn(text, "+-");
	int base = index_of(bases, sizeof(bases) / sizeof(*bases), text, length);

	if (base == NUMBER || base > QUERIED)
		tell(r, s, NUMBER, number(r->text, text));
	else
		tell(r, s, (enum base)base,
		     text[length] ? (text[length] == '-' ? -1 : 1) * number(r->text, text + length + 1) : 0);
}

/* Returns whether the word is about a size. */
static bool parse_size(struct rule *r, const char *word)
{
	size_t length = strcspn(word, "<=>");
	int s = index_of(sizes, SIZE_COUNT, word, length);

	if (s == SIZE_COUNT)
		return false;
	r->needs |= 1 << s;
	word += length;
	if (*word == '>') {
		r->sizes[s].above = number(r->text, word + 1);
	} else if (*word == '=') {
		parse_figure(r, s, word + 1);
	} else if (!strncmp(word, "<=", 2)) {
		if (r->fault != SIZE)
			set_fault(r, SIZE, 0);
		r->sizes[s].most = number(r->text, word + 2);
	} else {
		return false;
	}
	return true;
}

static void parse_word(struct rule *r, char *word)
{
	static const char *const types[] = {
		[IBV_QPT_RC] = "RC", [IBV_QPT_UC] = "UC", [IBV_QPT_UD] = "UD", [IBV_QPT_RAW_PACKET] = "RAW_PACKET",
		[0] = "", [1] = "", [5] = "", [6] = "", [7] = "",
	};
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	/* Those that take no value; "" is none of them. */
	static const char *const faults[] = { [HANG] = "hang", [CRASH] = "crash", [DROP] = "drop", [KEEP] = "keep",
					      [NO_FAULT] = "", [FAIL] = "", [SIZE] = "", [DELAY] = "" };
	char *value;
	int i;

	if (parse_size(r, word))
		return;
	value = strchr(word, '=');
	if (value)
		*value++ = '\0';
	if (!strcmp(word, "errno") && value) {
		int sign = *value == '-' ? -1 : 1, e = errno_named(value + (sign < 0));

		if (!e && strcmp(value, "none"))
			give_up("%s: no errno \"%s\"", r->text, value);
		if (sign < 0 && !(verbs[r->verb].can & (HAS_STATE | HAS_SOLICITED)))
			give_up("%s: not with this verb", r->text);
		set_fault(r, FAIL, sign * e);
	} else if (!value && (i = index_of(faults, KEEP + 1, word, strlen(word))) <= KEEP) {
		set_fault(r, (enum fault)i, 0);
		r->needs |= i == DROP ? CAN_DROP : i == KEEP ? CAN_KEEP : 0;
	} else if (!strcmp(word, "short")) {
		int s, can = verbs[r->verb].can & ~NOT_SHORT;
		long by = value ? number(r->text, value) : 1;

		for (s = 0; s < SIZE_COUNT; s++)
			if (can & 1 << s)
				tell(r, s, LESSER, -by);
		if (r->fault != SIZE)
			give_up("%s: not with this verb", r->text);
	} else if (!strcmp(word, "delay") && value) {
		set_fault(r, DELAY, number(r->text, value));
	} else if (!strcmp(word, "while") && value && *value) {
		snprintf(r->keep, sizeof(r->keep), "%s", value);
	} else if (!strcmp(word, "after") && value) {
		r->after = number(r->text, value);
	} else if (!strcmp(word, "times") && value) {
		r->times = number(r->text, value);
	} else if (!strcmp(word, "type") && value) {
		r->types = set_of(r, types, sizeof(types) / sizeof(*types), value);
		r->needs |= HAS_TYPE;
	} else if (!strcmp(word, "state") && value) {
		r->states = set_of(r, states, sizeof(states) / sizeof(*states), value);
		r->needs |= HAS_STATE;
	} else if (!strcmp(word, "ready") && value && (!strcmp(value, "yes") || !strcmp(value, "no"))) {
		r->ready = !strcmp(value, "yes");
		r->needs |= HAS_STATE;
	} else if (!strcmp(word, "srq") && !value) {
		r->srq = true;
		r->needs |= HAS_TYPE;
	} else if (!strcmp(word, "channel") && !value) {
		r->channel = true;
		r->needs |= HAS_CHANNEL;
	} else if (!strcmp(word, "solicited") && !value) {
		r->solicited = true;
		r->needs |= HAS_SOLICITED;
	} else if (!strcmp(word, "before") && value) {
		r->before = verb_named(r, value);
	} else {
		give_up("%s: \"%s\" is not known", r->text, word);
	}
}

static void parse(const char *text)
{
	struct rule *r = &rules[nrules];
	char line[MAX_LINE], *save = NULL, *word;
	int s;

	snprintf(line, sizeof(line), "%s", text);
	word = strtok_r(line, " \t", &save);
	if (!word)
		return;
	if (nrules == MAX_RULES)
		give_up("more than %d lines", MAX_RULES);
	snprintf(r->text, sizeof(r->text), "%s", text);
	r->verb = verb_named(r, word);
	r->times = r->ready = -1;
	r->before = VERB_COUNT;
	for (s = 0; s < SIZE_COUNT; s++)
		r->sizes[s].above = r->sizes[s].most = -1;
	while ((word = strtok_r(NULL, " \t", &save)))
		parse_word(r, word);
	if (r->fault == NO_FAULT || (r->fault == KEEP) != (r->keep[0] != '\0'))
		give_up("%s: no whole fault", text);
	if ((r->needs & ~verbs[r->verb].can) || (r->fault == FAIL && (verbs[r->verb].can & CANNOT_FAIL)))
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

/* The queue pairs that have been in RTS since they were in RESET. */
static _Atomic(const struct ibv_qp *) ready[MAX_READY];

/* Puts one in the place of another; NULL is a free place. Returns whether there was one. */
static bool swap_ready(const struct ibv_qp *from, const struct ibv_qp *to)
{
	int i;

	for (i = 0; i < MAX_READY; i++) {
		const struct ibv_qp *expected = from;

		if (atomic_compare_exchange_strong(&ready[i], &expected, to))
			return true;
	}
	return false;
}

static bool been_ready(const struct ibv_qp *qp) { return swap_ready(qp, qp); }

static void set_ready(const struct ibv_qp *qp)
{
	if (!been_ready(qp) && !swap_ready(NULL, qp))
		give_up("more than %d queue pairs in RTS", MAX_READY);
}

/* Returns whether a rule's conditions are met by a call of its verb. */
static bool meets(const struct rule *r, const struct call *c)
{
	static const struct call none;
	int s;

	if (!c)
		c = &none;
	for (s = 0; s < SIZE_COUNT; s++)
		if (r->sizes[s].above >= 0 && c->asked[s] <= r->sizes[s].above)
			return false;
	return (!r->types || (c->type < 32 && r->types & 1U << c->type)) &&
	       (!r->states || r->states & 1U << c->qp->state) && (r->ready < 0 || r->ready == been_ready(c->qp)) &&
	       (!r->srq || c->srq) && (!r->channel || c->channel) && (!r->solicited || c->solicited) &&
	       (r->before == VERB_COUNT || !atomic_load(&called[r->before]));
}

/*
 * Is called at the begin of each verb. Returns the rule that the verb has to act
 * by, which is one of FAIL, SIZE and DROP, or NULL if it is to work.
 */
static const struct rule *faulty(enum verb v, const struct call *c)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int saved = errno, i;

	pthread_once(&once, load);
	atomic_store(&called[v], true);
	for (i = 0; i < nrules; i++) {
		struct rule *r = &rules[i];

		if (r->verb != v || r->fault == KEEP || !meets(r, c) || !acts(r))
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

#define REAL(name, version)                                        \
	({                                                         \
		static __typeof__(&name) real;                     \
		if (!real)                                         \
			real = (__typeof__(&name))next(#name, version); \
		real;                                              \
	})

/* For a verb that fails with NULL and errno. */
#define OR_NULL(name, call)                                        \
	const struct rule *rule = faulty(V_##name, call);          \
	if (rule && rule->fault == FAIL) {                         \
		errno = (int)rule->value;                          \
		return NULL;                                       \
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
#define OR_ERRNO(name, call)                                       \
	const struct rule *rule = faulty(V_##name, call);          \
	if (rule && rule->fault == FAIL)                           \
		return failed(rule->value);                        \
	if (rule && rule->fault == DROP)                           \
		return 0

/* For a verb that posts, and says besides at which request it stopped. */
#define OR_BAD(name, call, wr, bad)                                \
	const struct rule *rule = faulty(V_##name, call);          \
	if (rule && rule->fault == FAIL) {                         \
		*(bad) = (wr);                                     \
		return failed(rule->value);                        \
	}                                                          \
	if (rule && rule->fault == DROP)                           \
		return 0

static struct call call_of(const struct ibv_qp *qp)
{
	return (struct call){ .qp = qp, .type = qp->qp_type, .srq = qp->srq };
}

/* What the device is asked for. */
static uint32_t cut(const struct rule *r, enum size s, uint32_t asked)
{
	return r && r->sizes[s].most >= 0 && asked > r->sizes[s].most ? (uint32_t)r->sizes[s].most : asked;
}

/* What the caller is told of a size. */
static uint32_t told(const struct rule *r, enum size s, uint32_t asked, uint32_t given, uint32_t queried)
{
	long n = 0;

	if (!r || !r->sizes[s].told)
		return given;
	switch (r->sizes[s].base) {
	case NUMBER:
		break;
	case ASKED:
		n = asked;
		break;
	case POW2:
		for (n = 1; n < asked; n *= 2)
			;
		break;
	case GIVEN:
		n = given;
		break;
	case QUERIED:
		n = queried;
		break;
	case LESSER:
		n = asked < given ? asked : given;
		break;
	}
	n += r->sizes[s].plus;
	return n > 0 ? (uint32_t)n : 0;
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
	const struct rule *rule = faulty(V_ibv_poll_cq, NULL);

	if (rule) {
		errno = (int)rule->value;
		return -errno;
	}
	return context_of(cq->context)->ops.poll_cq(cq, n, wc);
}

static int faulty_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const struct call call = { .solicited = solicited_only };
	OR_ERRNO(ibv_req_notify_cq, &call);
	return context_of(cq->context)->ops.req_notify_cq(cq, solicited_only);
}

static int faulty_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct call call = call_of(qp);
	call.solicited = wr && wr->send_flags & IBV_SEND_SOLICITED;
	OR_BAD(ibv_post_send, &call, wr, bad);
	return context_of(qp->context)->ops.post_send(qp, wr, bad);
}

static int faulty_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct call call = call_of(qp);
	OR_BAD(ibv_post_recv, &call, wr, bad);
	return context_of(qp->context)->ops.post_recv(qp, wr, bad);
}

static int faulty_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	OR_BAD(ibv_post_srq_recv, NULL, wr, bad);
	return context_of(srq->context)->ops.post_srq_recv(srq, wr, bad);
}

static int faulty_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	OR_ERRNO(ibv_query_port, NULL);
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

	OR_NULL(ibv_open_device, NULL);
	ctx = REAL(ibv_open_device, "IBVERBS_1.1")(device);
	if (!ctx)
		return NULL;
	device->transport_type = (int)told(rule, S_transport_type, 0, (uint32_t)device->transport_type, 0);
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
	const struct rule *rule = faulty(V_ibv_close_device, NULL);
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
	const struct rule *rule = faulty(V_ibv_query_gid_table, NULL);

	if (rule)
		return -rule->value;
	return REAL(_ibv_query_gid_table, "IBVERBS_1.11")(ctx, entries, max, flags, size);
}

/* Which of the two is called depends on what the compiler knows of access. */
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	OR_NULL(ibv_reg_mr, NULL);
	return REAL(ibv_reg_mr_iova2, "IBVERBS_1.8")(pd, addr, length, iova, access);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel,
			     int comp_vector)
{
	const struct call call = { .channel = channel, .asked = { [S_cqe] = cqe, [S_comp_vector] = comp_vector } };
	struct ibv_cq *cq;

	OR_NULL(ibv_create_cq, &call);
	cq = REAL(ibv_create_cq, "IBVERBS_1.1")(ctx, (int)cut(rule, S_cqe, (uint32_t)cqe), cq_context, channel,
						comp_vector);
	if (cq)
		cq->cqe = (int)told(rule, S_cqe, (uint32_t)cqe, (uint32_t)cq->cqe, (uint32_t)cq->cqe);
	return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	const struct rule *rule = faulty(V_ibv_get_cq_event, NULL);
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
	if (!faulty(V_ibv_ack_cq_events, NULL))
		REAL(ibv_ack_cq_events, "IBVERBS_1.1")(cq, n);
}

/* For each size of an object: what is asked of a verb, and what its caller is told. */
#define ASK(s) call.asked[S_##s] = asked.s;
#define CUT(s) size->s = cut(rule, S_##s, asked.s);
#define TELL(s) size->s = told(rule, S_##s, asked.s, size->s, queried.s);
#define TELL_AGAIN(s) size->s = told(rule, S_##s, size->s, size->s, size->s);

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	const struct ibv_srq_attr asked = init->attr;
	struct ibv_srq_attr *size = &init->attr, queried;
	struct call call = { 0 };
	struct ibv_srq *srq;

	SRQ_SIZES(ASK)
	OR_NULL(ibv_create_srq, &call);
	SRQ_SIZES(CUT)
	srq = REAL(ibv_create_srq, "IBVERBS_1.1")(pd, init);
	if (!srq)
		init->attr = asked;
	if (!srq || !rule)
		return srq;
	if (REAL(ibv_query_srq, "IBVERBS_1.1")(srq, &queried))
		give_up("%s: the query fails", rule->text);
	SRQ_SIZES(TELL)
	return srq;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *size)
{
	int ret;

	OR_ERRNO(ibv_query_srq, NULL);
	ret = REAL(ibv_query_srq, "IBVERBS_1.1")(srq, size);
	if (!ret) {
		SRQ_SIZES(TELL_AGAIN)
	}
	return ret;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap asked = init->cap;
	struct ibv_qp_cap *size = &init->cap, queried;
	struct call call = { .type = init->qp_type, .srq = init->srq };
	struct ibv_qp_init_attr ignored;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	QP_SIZES(ASK)
	OR_NULL(ibv_create_qp, &call);
	QP_SIZES(CUT)
	qp = REAL(ibv_create_qp, "IBVERBS_1.1")(pd, init);
	if (!qp)
		init->cap = asked;
	if (!qp || !rule)
		return qp;
	if (REAL(ibv_query_qp, "IBVERBS_1.1")(qp, &attr, IBV_QP_CAP, &ignored))
		give_up("%s: the query fails", rule->text);
	queried = ignored.cap;
	QP_SIZES(TELL)
	return qp;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	const struct call call = call_of(qp);
	int ret;

	OR_ERRNO(ibv_query_qp, &call);
	ret = REAL(ibv_query_qp, "IBVERBS_1.1")(qp, attr, mask, init);
	if (!ret) {
		struct ibv_qp_cap *size = &attr->cap;

		QP_SIZES(TELL_AGAIN)
		size = &init->cap;
		QP_SIZES(TELL_AGAIN)
	}
	return ret;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	const struct call call = call_of(qp);
	int ret;

	OR_ERRNO(ibv_modify_qp, &call);
	ret = REAL(ibv_modify_qp, "IBVERBS_1.1")(qp, attr, mask);
	if (!ret && mask & IBV_QP_STATE) {
		if (attr->qp_state == IBV_QPS_RTS)
			set_ready(qp);
		else if (attr->qp_state == IBV_QPS_RESET)
			swap_ready(qp, NULL);
	}
	return ret;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	const struct call call = call_of(qp);
	bool was_ready;
	int ret;

	OR_ERRNO(ibv_destroy_qp, &call);
	/* Before its address can be that of another one. */
	was_ready = swap_ready(qp, NULL);
	ret = REAL(ibv_destroy_qp, "IBVERBS_1.1")(qp);
	if (ret && was_ready)
		set_ready(qp);
	return ret;
}

/* A CQ that is said to have been resized keeps its size. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	const struct rule *rule = faulty(V_ibv_resize_cq, NULL);

	if (rule && rule->fault == FAIL)
		return failed(rule->value);
	if (rule && rule->fault == DROP) {
		cq->cqe = cqe;
		return 0;
	}
	return REAL(ibv_resize_cq, "IBVERBS_1.1")(cq, cqe);
}

/* Those of whose calls nothing need be known. */
#define PLAIN(type, fails, name, version, parameters, arguments) \
	type name parameters                                     \
	{                                                        \
		fails(name, NULL);                               \
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
