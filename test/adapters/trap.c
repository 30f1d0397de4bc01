// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Doorbells that only a store tells of: pages that a process cannot write to, whose
 * faults are decoded as a device would see the store. Each store costs a fault.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/refcount.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "paper.h"

/* A trap outlives its context while a process still has the area mapped; so must the
 * module, whose code its faults call. */
struct trap {
	refcount_t users; /* areas, and the context */
	struct mutex lock; /* of ctx */
	struct paper_ucontext *ctx;
	paper_stored *stored;
	unsigned long cookie;
	struct list_head entry;
};

/* The traps of all contexts; taken before a trap's own lock. */
static DEFINE_MUTEX(traps_lock);

static void trap_put(struct trap *trap)
{
	if (refcount_dec_and_test(&trap->users))
		kfree(trap);
}

/* register_of returns where the trapped process has a general register. */
static unsigned long *register_of(struct pt_regs *regs, unsigned int number)
{
	unsigned long *const registers[] = {
		&regs->ax, &regs->cx, &regs->dx, &regs->bx, &regs->sp, &regs->bp, &regs->si, &regs->di,
		&regs->r8, &regs->r9, &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14, &regs->r15,
	};

	return registers[number & 15];
}

/*
 * decode_store reads the instruction that the process is at. It returns its length,
 * or 0 if it is not a store that a doorbell is rung with: mov of a register or a
 * constant (88, 89, C6, C7), movnti (0F C3).
 */
static unsigned int decode_store(struct pt_regs *regs, u64 *value, unsigned int *size)
{
	u8 code[15] = {}, rex = 0, opcode, modrm, mod, rm;
	unsigned int n = 0, operand = 4, number;
	bool constant;
	s32 immediate;

	if (copy_from_user_nofault(code, (void __user *)regs->ip, sizeof(code))) {
		/* The page's end, perhaps. */
		size_t rest = PAGE_SIZE - offset_in_page(regs->ip);

		if (rest >= sizeof(code) || copy_from_user_nofault(code, (void __user *)regs->ip, rest))
			return 0;
	}
	if (code[n] == 0x66) {
		operand = 2;
		n++;
	}
	if ((code[n] & 0xf0) == 0x40)
		rex = code[n++];
	if (rex & 8)
		operand = 8;
	opcode = code[n++];
	if (opcode == 0x0f) {
		if (code[n++] != 0xc3)
			return 0;
	} else if (opcode == 0x88 || opcode == 0xc6) {
		operand = 1;
	} else if (opcode != 0x89 && opcode != 0xc7) {
		return 0;
	}
	constant = opcode == 0xc6 || opcode == 0xc7;

	modrm = code[n++];
	mod = modrm >> 6;
	rm = modrm & 7;
	if (mod == 3)
		return 0;
	if (rm == 4) {
		u8 base = code[n++] & 7;

		if (mod == 0 && base == 5)
			n += 4;
	} else if (mod == 0 && rm == 5) {
		n += 4;
	}
	n += mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (constant) {
		unsigned int length = operand == 8 ? 4 : operand;

		if (n + length > sizeof(code))
			return 0;
		immediate = 0;
		memcpy(&immediate, code + n, length);
		n += length;
		*value = (s64)immediate;
	} else {
		number = (modrm >> 3 & 7) | (rex & 4 ? 8 : 0);
		if (operand == 1 && !rex && number >= 4)
			return 0; /* AH and its like */
		*value = *register_of(regs, number);
	}
	if (operand < 8)
		*value &= (1ULL << operand * 8) - 1;
	*size = operand;
	return n > sizeof(code) ? 0 : n;
}

static vm_fault_t trap_fault(struct vm_fault *vmf)
{
	struct trap *trap = vmf->vma->vm_private_data;
	struct pt_regs *regs = task_pt_regs(current);
	unsigned int size, length;
	u64 value;

	if (!(vmf->flags & FAULT_FLAG_WRITE) || !(vmf->flags & FAULT_FLAG_USER))
		return VM_FAULT_SIGBUS;
	length = decode_store(regs, &value, &size);
	if (!length) {
		pr_warn_ratelimited("paper: a store to a doorbell that is not understood, at %#lx of %s\n", regs->ip, current->comm);
		return VM_FAULT_SIGBUS;
	}
	mutex_lock(&trap->lock);
	if (trap->ctx) {
		struct paper_dev *dev = to_paper_dev(trap->ctx->ib.device);

		mutex_lock(&dev->lock);
		trap->stored(trap->ctx, trap->cookie, vmf->real_address - vmf->vma->vm_start, value, size);
		mutex_unlock(&dev->lock);
		paper_wake(dev);
	}
	mutex_unlock(&trap->lock);
	regs->ip += length;
	return VM_FAULT_NOPAGE;
}

static void trap_open(struct vm_area_struct *vma)
{
	struct trap *trap = vma->vm_private_data;

	refcount_inc(&trap->users);
	__module_get(THIS_MODULE);
}

static void trap_close(struct vm_area_struct *vma)
{
	trap_put(vma->vm_private_data);
	module_put(THIS_MODULE);
}

static const struct vm_operations_struct trap_ops = {
	.open = trap_open,
	.close = trap_close,
	.fault = trap_fault,
};

int paper_mmap_trapped(struct paper_ucontext *ctx, struct vm_area_struct *vma, paper_stored *stored, unsigned long cookie)
{
	struct trap *trap = kzalloc(sizeof(*trap), GFP_KERNEL);

	if (!trap)
		return -ENOMEM;
	if (!try_module_get(THIS_MODULE)) { /* it is on its way out, and would not wait */
		kfree(trap);
		return -ENODEV;
	}
	refcount_set(&trap->users, 2);
	mutex_init(&trap->lock);
	trap->ctx = ctx;
	trap->stored = stored;
	trap->cookie = cookie;
	mutex_lock(&traps_lock);
	list_add_tail(&trap->entry, &ctx->traps);
	mutex_unlock(&traps_lock);
	vma->vm_private_data = trap;
	vma->vm_ops = &trap_ops;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP | VM_IO);
#else
	vma->vm_flags |= VM_DONTCOPY | VM_DONTEXPAND | VM_DONTDUMP | VM_IO;
#endif
	return 0;
}

void paper_forget_traps(struct paper_ucontext *ctx)
{
	struct trap *trap, *next;

	mutex_lock(&traps_lock);
	list_for_each_entry_safe (trap, next, &ctx->traps, entry) {
		list_del(&trap->entry);
		mutex_lock(&trap->lock);
		trap->ctx = NULL;
		mutex_unlock(&trap->lock);
		trap_put(trap);
	}
	mutex_unlock(&traps_lock);
}
