package main

import (
	"fmt"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/owner"
	"rdma_exporter/internal/supervisor"
)

// supervise checks everything that was configured about the devices, and returns
// what a supervisor needs to know of them, all but its sinks and its logger, and by
// what they are judged. It starts nothing.
func (o *options) supervise() (supervisor.Config, health.Config, error) {
	o.include, o.exclude = whole(o.include), whole(o.exclude)
	config, err := loadConfig(o.configFile)
	if err != nil {
		return supervisor.Config{}, health.Config{}, err
	}
	config.Probe.Notification = o.notification
	if err := o.checkTime(config.Probe); err != nil {
		return supervisor.Config{}, health.Config{}, err
	}
	discover, profiles, err := discoverer(o)
	if err != nil {
		return supervisor.Config{}, health.Config{}, err
	}
	children, err := newCommands(settings{Provider: o.provider, Probe: config.Probe, When: o.when, Inventory: o.inventory()}, profiles)
	if err != nil {
		return supervisor.Config{}, health.Config{}, err
	}
	jitter := o.jitter
	if jitter == 0 {
		jitter = -1 // the supervisor's word for none
	}
	contract := supervisor.ContractConfig{Interval: o.contractInterval, Timeout: o.contractTimeout}
	if o.judges() {
		contract.Command = children.contract
	}
	stock := supervisor.InventoryConfig{Interval: o.inventoryInterval, Timeout: o.inventoryTimeout}
	if o.takesStock() {
		stock.Command = children.inventory
	}
	// Who holds objects of simulated devices is told by their profile.
	if o.takesStock() && o.provider == providerLibibverbs {
		if _, err := owner.New(o.procfs, o.cgroup); err != nil {
			return supervisor.Config{}, health.Config{}, fmt.Errorf("--path.procfs: %w", err)
		}
	}
	return supervisor.Config{
		Provider: o.provider, Discover: discover, Command: children.probe, Contract: contract, Inventory: stock,
		Interval: o.interval, Timeout: o.timeout, Discovery: min(o.discovery, o.interval),
		Backoff: max(o.backoff, o.interval), Concurrency: o.concurrency, Jitter: jitter,
	}, config.Findings, nil
}

// judges tells whether the contracts are judged. What is done once leaves out
// nothing.
func (o *options) judges() bool { return o.command == commandAudit || o.contractInterval > 0 }

// takesStock is judges for the inventory.
func (o *options) takesStock() bool { return o.command == commandAudit || o.inventoryInterval > 0 }
