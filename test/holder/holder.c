/*
 * holder: creates verbs objects on a device and holds them, so that what the
 * kernel's resource tables say can be tested against what is known to be there.
 *
 *   holder --device rxe0 --qps 100 --rts 10 --error 5 --mrs 3 --mr-bytes 8192
 *
 * It prints "ready" on its standard output once all objects exist, and holds
 * them until its standard input ends or SIGTERM comes. It destroys nothing by
 * itself. Any failure ends it with status 1 and a line on standard error.
 *
 * This program shares no code with the rest of the repository.
 */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT_NUMBER = 1, GID_INDEX = 1 }; /* the port, and the GID of QPs that get to RTR */

struct options {
	const char *device;
	enum ibv_qp_type qp_type;
	int pds, cqs, cq_entries, srqs, mrs, qps;
	size_t mr_bytes;
	int init, rtr, rts, error; /* how many QPs are moved to that state */
	int use_srqs;              /* QPs take their receives from the SRQs */
	int threads;               /* how many threads create a set of objects each */
	int thread_ends, pass_fd;
};

/* What one thread creates, on a context of its own. */
struct set {
	const struct options *options;
	pid_t thread;
	struct ibv_context *context;
	struct ibv_pd **pds;
	struct ibv_cq **cqs;
	struct ibv_srq **srqs;
	struct ibv_mr **mrs;
	struct ibv_qp **qps;
	void *memory;
};

static void die(int error, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "holder: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	if (error)
		fprintf(stderr, ": %s", strerror(error));
	fprintf(stderr, "\n");
	_exit(1);
}

static const long most = 1 << 24; /* of anything */

static long number(const char *text, long low, long high)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 0);
	if (errno || end == text || *end || value < low || value > high) {
		fprintf(stderr, "holder: %s is no number from %ld to %ld\n", text, low, high);
		exit(2);
	}
	return value;
}

static void *list_of(int count)
{
	void *list = calloc(count > 0 ? count : 1, sizeof(void *));

	if (!list)
		die(errno, "calloc");
	return list;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	if (!list)
		die(errno, "ibv_get_device_list");
	for (int i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		context = ibv_open_device(list[i]);
		if (!context)
			die(errno, "ibv_open_device %s", name);
	}
	ibv_free_device_list(list);
	if (!context)
		die(0, "there is no device %s", name);
	return context;
}

static void to_init(const struct options *o, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = PORT_NUMBER };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (o->qp_type == IBV_QPT_UD) {
		attr.qkey = 0x11111111;
		mask |= IBV_QP_QKEY;
	} else {
		attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	if (ibv_modify_qp(qp, &attr, mask))
		die(errno, "ibv_modify_qp to INIT");
}

/* Its peer is itself. */
static void to_rtr(const struct options *o, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.rq_psn = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = PORT_NUMBER },
	};
	int mask = IBV_QP_STATE;

	if (o->qp_type != IBV_QPT_UD) {
		if (ibv_query_gid(qp->context, PORT_NUMBER, GID_INDEX, &attr.ah_attr.grh.dgid))
			die(errno, "ibv_query_gid %d", GID_INDEX);
		attr.ah_attr.grh.sgid_index = GID_INDEX;
		attr.ah_attr.grh.hop_limit = 1;
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (o->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (ibv_modify_qp(qp, &attr, mask))
		die(errno, "ibv_modify_qp to RTR");
}

static void to_rts(const struct options *o, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (o->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (ibv_modify_qp(qp, &attr, mask))
		die(errno, "ibv_modify_qp to RTS");
}

static void to_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		die(errno, "ibv_modify_qp to ERR");
}

/*
 * The first --error QPs are in the error state, the next --init ones in INIT,
 * then come RTR and RTS; the rest stays in RESET.
 */
static void move(const struct options *o, struct ibv_qp *qp, int i)
{
	if (i < o->error) {
		to_init(o, qp); /* rxe refuses to go from RESET to ERR */
		to_error(qp);
		return;
	}
	i -= o->error;
	if (i >= o->init + o->rtr + o->rts)
		return;
	to_init(o, qp);
	if (i < o->init)
		return;
	to_rtr(o, qp);
	if (i >= o->init + o->rtr)
		to_rts(o, qp);
}

static void create_qp(struct set *s, int i)
{
	const struct options *o = s->options;
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cqs[i % o->cqs],
		.recv_cq = s->cqs[i % o->cqs],
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = o->qp_type,
	};

	if (o->use_srqs)
		attr.srq = s->srqs[i % o->srqs];
	s->qps[i] = ibv_create_qp(s->pds[i % o->pds], &attr);
	if (!s->qps[i])
		die(errno, "ibv_create_qp %d", i);
	move(o, s->qps[i], i);
}

static void create_set(struct set *s)
{
	const struct options *o = s->options;

	s->thread = syscall(SYS_gettid);
	s->context = open_device(o->device);
	s->pds = list_of(o->pds);
	s->cqs = list_of(o->cqs);
	s->srqs = list_of(o->srqs);
	s->mrs = list_of(o->mrs);
	s->qps = list_of(o->qps);

	for (int i = 0; i < o->pds; i++) {
		s->pds[i] = ibv_alloc_pd(s->context);
		if (!s->pds[i])
			die(errno, "ibv_alloc_pd %d", i);
	}
	for (int i = 0; i < o->cqs; i++) {
		s->cqs[i] = ibv_create_cq(s->context, o->cq_entries, NULL, NULL, 0);
		if (!s->cqs[i])
			die(errno, "ibv_create_cq %d", i);
	}
	for (int i = 0; i < o->srqs; i++) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };

		s->srqs[i] = ibv_create_srq(s->pds[i % o->pds], &attr);
		if (!s->srqs[i])
			die(errno, "ibv_create_srq %d", i);
	}
	if (o->mrs > 0) {
		s->memory = mmap(NULL, o->mr_bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (s->memory == MAP_FAILED)
			die(errno, "mmap");
	}
	for (int i = 0; i < o->mrs; i++) {
		s->mrs[i] = ibv_reg_mr(s->pds[i % o->pds], s->memory, o->mr_bytes,
				       IBV_ACCESS_LOCAL_WRITE);
		if (!s->mrs[i])
			die(errno, "ibv_reg_mr %d", i);
	}
	for (int i = 0; i < o->qps; i++)
		create_qp(s, i);
}

static pthread_barrier_t created; /* for --threads: by all threads, and main */

static void *create_and_stay(void *set)
{
	create_set(set);
	pthread_barrier_wait(&created);
	for (;;)
		pause();
	return NULL;
}

static void *create_and_end(void *set)
{
	create_set(set);
	return NULL;
}

/* Returns once all sets exist. */
static void create_in_threads(struct set *sets, const struct options *o)
{
	pthread_t thread;
	int error;

	if (o->thread_ends) {
		for (int i = 0; i < o->threads; i++) {
			if ((error = pthread_create(&thread, NULL, create_and_end, &sets[i])))
				die(error, "pthread_create");
			if ((error = pthread_join(thread, NULL)))
				die(error, "pthread_join");
			/* The kernel is not done with a thread when it can be joined. */
			while (syscall(SYS_tgkill, getpid(), sets[i].thread, 0) == 0)
				usleep(1000);
		}
		return;
	}
	if ((error = pthread_barrier_init(&created, NULL, o->threads + 1)))
		die(error, "pthread_barrier_init");
	for (int i = 0; i < o->threads; i++)
		if ((error = pthread_create(&thread, NULL, create_and_stay, &sets[i])))
			die(error, "pthread_create");
	pthread_barrier_wait(&created);
}

/* Waits for the end of the input, or for a signal, which interrupts the read. */
static void wait_for_end(int fd)
{
	char buffer[256];
	ssize_t n;

	do
		n = read(fd, buffer, sizeof(buffer));
	while (n > 0);
}

/*
 * One child creates the objects, hands the open device to a child of its own
 * just by forking, and ends. This process, which holds nothing, has reaped it
 * when it says that it is ready. The grandchild ends with this process.
 */
static void hold_through_another(struct set *set)
{
	int alive[2], told[2], status;
	pid_t creator, keeper;

	if (pipe(alive) || pipe(told))
		die(errno, "pipe");
	creator = fork();
	if (creator < 0)
		die(errno, "fork");
	if (creator == 0) {
		create_set(set);
		keeper = fork();
		if (keeper < 0)
			die(errno, "fork");
		if (keeper == 0) {
			close(alive[1]);
			close(told[1]);
			close(STDOUT_FILENO); /* nobody shall wait for this one's output */
			wait_for_end(alive[0]);
			_exit(0);
		}
		if (write(told[1], &keeper, sizeof(keeper)) != sizeof(keeper))
			die(errno, "write");
		_exit(0);
	}
	close(told[1]);
	if (read(told[0], &keeper, sizeof(keeper)) != sizeof(keeper))
		die(0, "the child that creates the objects failed");
	if (waitpid(creator, &status, 0) != creator || status != 0)
		die(0, "the child that creates the objects ended with status %#x", status);
	printf("ready creator=%d keeper=%d\n", creator, keeper);
	fflush(stdout);
	wait_for_end(STDIN_FILENO);
}

static const char usage[] =
	"Usage: holder [OPTION...]\n"
	"Creates verbs objects, prints \"ready\", and holds them until its standard\n"
	"input ends or SIGTERM comes.\n\n"
	"  --device NAME          (rxe0)\n"
	"  --pds N                protection domains (1)\n"
	"  --cqs N                completion queues (1), shared by the QPs\n"
	"  --cq-entries N         size of each (1)\n"
	"  --srqs N               shared receive queues (0)\n"
	"  --use-srqs             the QPs use them, in turn\n"
	"  --mrs N                memory regions (0), all of the same memory\n"
	"  --mr-bytes N           size of each (4096)\n"
	"  --qps N                queue pairs (0)\n"
	"  --qp-type rc|uc|ud     (rc)\n"
	"  --error N, --init N, --rtr N, --rts N\n"
	"                         how many of them are moved to that state, in this\n"
	"                         order; RC and UC QPs are connected to themselves\n"
	"  --threads N            that many threads create all of that, each on a\n"
	"                         context of its own, and stay\n"
	"  --thread-ends          those threads (1) end instead\n"
	"  --pass-fd              a child creates the objects and ends, and its child\n"
	"                         keeps the device open; \"ready\" names both\n";

static enum ibv_qp_type qp_type(const char *name)
{
	if (!strcmp(name, "rc"))
		return IBV_QPT_RC;
	if (!strcmp(name, "uc"))
		return IBV_QPT_UC;
	if (!strcmp(name, "ud"))
		return IBV_QPT_UD;
	fprintf(stderr, "holder: %s is no type of queue pair\n", name);
	exit(2);
}

static void parse(int argc, char **argv, struct options *o)
{
	enum { DEVICE = 256, PDS, CQS, ENTRIES, SRQS, USE_SRQS, MRS, BYTES, QPS, TYPE,
	       ERR, INIT, RTR, RTS, THREADS, THREAD_ENDS, PASS_FD, HELP };
	static const struct option known[] = {
		{ "device", required_argument, NULL, DEVICE },
		{ "pds", required_argument, NULL, PDS },
		{ "cqs", required_argument, NULL, CQS },
		{ "cq-entries", required_argument, NULL, ENTRIES },
		{ "srqs", required_argument, NULL, SRQS },
		{ "use-srqs", no_argument, NULL, USE_SRQS },
		{ "mrs", required_argument, NULL, MRS },
		{ "mr-bytes", required_argument, NULL, BYTES },
		{ "qps", required_argument, NULL, QPS },
		{ "qp-type", required_argument, NULL, TYPE },
		{ "error", required_argument, NULL, ERR },
		{ "init", required_argument, NULL, INIT },
		{ "rtr", required_argument, NULL, RTR },
		{ "rts", required_argument, NULL, RTS },
		{ "threads", required_argument, NULL, THREADS },
		{ "thread-ends", no_argument, NULL, THREAD_ENDS },
		{ "pass-fd", no_argument, NULL, PASS_FD },
		{ "help", no_argument, NULL, HELP },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (option) {
		case DEVICE: o->device = optarg; break;
		case PDS: o->pds = number(optarg, 0, most); break;
		case CQS: o->cqs = number(optarg, 0, most); break;
		case ENTRIES: o->cq_entries = number(optarg, 1, most); break;
		case SRQS: o->srqs = number(optarg, 0, most); break;
		case USE_SRQS: o->use_srqs = 1; break;
		case MRS: o->mrs = number(optarg, 0, most); break;
		case BYTES: o->mr_bytes = number(optarg, 1, 1L << 40); break;
		case QPS: o->qps = number(optarg, 0, most); break;
		case TYPE: o->qp_type = qp_type(optarg); break;
		case ERR: o->error = number(optarg, 0, most); break;
		case INIT: o->init = number(optarg, 0, most); break;
		case RTR: o->rtr = number(optarg, 0, most); break;
		case RTS: o->rts = number(optarg, 0, most); break;
		case THREADS: o->threads = number(optarg, 1, 1024); break;
		case THREAD_ENDS: o->thread_ends = 1; break;
		case PASS_FD: o->pass_fd = 1; break;
		case HELP: fputs(usage, stdout); exit(0);
		default: exit(2);
		}
	}
	if (o->thread_ends && !o->threads)
		o->threads = 1;
	if (optind < argc || o->error + o->init + o->rtr + o->rts > o->qps ||
	    (o->use_srqs && !o->srqs) || (o->qps && (!o->pds || !o->cqs)) ||
	    ((o->mrs || o->srqs) && !o->pds) || (o->pass_fd && o->threads)) {
		fprintf(stderr, "holder: these options do not go together; see --help\n");
		exit(2);
	}
}

static void on_term(int signal)
{
	(void)signal;
	close(STDIN_FILENO); /* so that the read that is under way or comes next fails */
}

int main(int argc, char **argv)
{
	struct options options = {
		.device = "rxe0", .qp_type = IBV_QPT_RC,
		.pds = 1, .cqs = 1, .cq_entries = 1, .mr_bytes = 4096,
	};
	struct sigaction action = { .sa_handler = on_term };
	struct set *sets;
	int count;

	parse(argc, argv, &options);
	count = options.threads ? options.threads : 1;
	sets = calloc(count, sizeof(*sets));
	if (!sets)
		die(errno, "calloc");
	for (int i = 0; i < count; i++)
		sets[i].options = &options;
	if (sigaction(SIGTERM, &action, NULL))
		die(errno, "sigaction");

	if (options.pass_fd) {
		hold_through_another(sets);
		return 0;
	}
	if (options.threads)
		create_in_threads(sets, &options);
	else
		create_set(sets);
	printf("ready");
	for (int i = 0; i < options.threads; i++)
		printf(" thread=%d", sets[i].thread);
	printf("\n");
	fflush(stdout);
	wait_for_end(STDIN_FILENO);
	return 0;
}
