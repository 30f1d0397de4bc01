// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * The network device of the paper ConnectX-7: how it answers ethtool and dcb.
 *
 * Modelled on drivers/net/ethernet/mellanox/mlx5/core of Linux 6.1: the statistics of
 * the priorities (en_stats.c, the group per_prio), which have pauses of those priorities
 * alone that PFC is enabled for; that only who reads them refreshes the driver's copy of
 * what the adapter counted (en_ethtool.c mlx5e_ethtool_get_ethtool_stats); and that dcb
 * tells that copy, of all priorities (en_dcbnl.c mlx5e_dcbnl_ieee_getpfc).
 *
 * Not modelled: all other statistics, and setting anything.
 */
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/dcbnl.h>

#include "paper.h"

/* What the adapter counts and how it is set up, for tests to write. */

static ulong pauses_received[IEEE_8021QAZ_MAX_TCS];
module_param_array(pauses_received, ulong, NULL, 0644);
MODULE_PARM_DESC(pauses_received, "pause frames that mlx5 received, by priority");

static ulong pauses_sent[IEEE_8021QAZ_MAX_TCS];
module_param_array(pauses_sent, ulong, NULL, 0644);
MODULE_PARM_DESC(pauses_sent, "pause frames that mlx5 sent, by priority");

static uint pfc = BIT(3);
module_param(pfc, uint, 0644);
MODULE_PARM_DESC(pfc, "bits of the priorities that mlx5 has PFC enabled for");

static bool global_pause;
module_param(global_pause, bool, 0644);
MODULE_PARM_DESC(global_pause, "mlx5 has 802.3x pause enabled, which it counts as priority 0");

/* Of each pause, as durations tell it. */
#define PAUSE_US 30

/* The driver's copy of what the adapter counted, under rtnl_lock as all below. */
static struct {
	u64 received[IEEE_8021QAZ_MAX_TCS], sent[IEEE_8021QAZ_MAX_TCS];
} copy;

/* The strings and values of a set of statistics, either of which may be NULL. */
struct set {
	u8 *names;
	u64 *values;
	unsigned int len;
};

static __printf(3, 4) void add(struct set *set, u64 value, const char *format, ...)
{
	va_list args;

	if (set->names) {
		va_start(args, format);
		vsnprintf(set->names + set->len * ETH_GSTRING_LEN, ETH_GSTRING_LEN, format, args);
		va_end(args);
	}
	if (set->values)
		set->values[set->len] = value;
	set->len++;
}

static void add_pauses(struct set *set, const char *of, unsigned int priority)
{
	add(set, copy.received[priority], "rx_%s_pause", of);
	add(set, copy.received[priority] * PAUSE_US, "rx_%s_pause_duration", of);
	add(set, copy.sent[priority], "tx_%s_pause", of);
	add(set, copy.sent[priority] * PAUSE_US, "tx_%s_pause_duration", of);
	add(set, copy.received[priority], "rx_%s_pause_transition", of);
}

static unsigned int statistics(u8 *names, u64 *values)
{
	struct set set = { .names = names, .values = values };
	unsigned int i;
	char of[8];

	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		add(&set, 0, "rx_prio%u_bytes", i);
		add(&set, 0, "rx_prio%u_packets", i);
		add(&set, 0, "rx_prio%u_discards", i);
		add(&set, 0, "tx_prio%u_bytes", i);
		add(&set, 0, "tx_prio%u_packets", i);
	}
	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++)
		if (pfc & BIT(i)) {
			snprintf(of, sizeof(of), "prio%c", (char)('0' + i));
			add_pauses(&set, of, i);
		}
	if (global_pause)
		add_pauses(&set, "global", 0);
	return set.len;
}

static int get_sset_count(struct net_device *netdev, int set)
{
	return set == ETH_SS_STATS ? statistics(NULL, NULL) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *netdev, u32 set, u8 *names)
{
	if (set == ETH_SS_STATS)
		statistics(names, NULL);
}

static void get_ethtool_stats(struct net_device *netdev, struct ethtool_stats *stats, u64 *values)
{
	unsigned int i;

	for (i = 0; i < IEEE_8021QAZ_MAX_TCS; i++) {
		copy.received[i] = pauses_received[i];
		copy.sent[i] = pauses_sent[i];
	}
	statistics(NULL, values);
}

static void get_drvinfo(struct net_device *netdev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "mlx5_core", sizeof(info->driver));
}

static int get_link_ksettings(struct net_device *netdev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = SPEED_400000; /* 4X NDR, as the port says */
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static int ieee_getpfc(struct net_device *netdev, struct ieee_pfc *answer)
{
	answer->pfc_cap = IEEE_8021QAZ_MAX_TCS;
	answer->pfc_en = pfc;
	memcpy(answer->indications, copy.received, sizeof(copy.received));
	memcpy(answer->requests, copy.sent, sizeof(copy.sent));
	return 0;
}

static const struct ethtool_ops ethtool_ops = {
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
};
static const struct dcbnl_rtnl_ops dcbnl_ops = { .ieee_getpfc = ieee_getpfc };

/* The port's network device is not of this module's making: its driver lends it. */
static const struct ethtool_ops *its_ethtool_ops;
static const struct dcbnl_rtnl_ops *its_dcbnl_ops;
static unsigned int ports; /* on it */

void paper_take_netdev(struct net_device *netdev)
{
	rtnl_lock();
	if (!ports++) {
		its_ethtool_ops = netdev->ethtool_ops;
		its_dcbnl_ops = netdev->dcbnl_ops;
		netdev->ethtool_ops = &ethtool_ops;
		netdev->dcbnl_ops = &dcbnl_ops;
	}
	rtnl_unlock();
}

void paper_give_netdev(struct net_device *netdev)
{
	rtnl_lock();
	if (!--ports) {
		netdev->ethtool_ops = its_ethtool_ops;
		netdev->dcbnl_ops = its_dcbnl_ops;
	}
	rtnl_unlock();
}
