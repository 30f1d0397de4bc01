/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs of this folder share. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(1);
}

/* Ends the program if a verb returned NULL. */
static inline void *must(void *p, const char *what)
{
	if (!p)
		die(what, errno);
	return p;
}

/* Ends the program if a verb failed, with an errno, a negative one, or -1 and errno. */
static inline void must0(int ret, const char *what)
{
	if (ret)
		die(what, ret == -1 ? errno : abs(ret));
}

static inline struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = must(ibv_get_device_list(NULL), "ibv_get_device_list");
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = must(ibv_open_device(list[i]), "ibv_open_device");
	ibv_free_device_list(list);
	if (!ctx)
		die(name, ENODEV);
	return ctx;
}
