
; Team of threads of a library: see planish.levels.loops.runtime.kernels, whose functions follow.
; A process makes it at its first call, and a child of it makes its own.

@team = internal global [@TEAM_SIZE@ x i64] zeroinitializer, align 64
; The process whose threads the team has; 0 before, -1 while they are made.
@owner = internal global i64 0
; Zero where the process has no such function; then calls run on one thread.
@create = internal constant ptr @pthread_create

declare extern_weak i32 @pthread_create(ptr, ptr, ptr, ptr)
declare hidden i64 @model_syscall(i64, i64, i64, i64, i64, i64) nounwind

define internal i32 @give_way() nounwind {
  %code = call i64 @model_syscall(i64 @SYS_YIELD@, i64 0, i64 0, i64 0, i64 0, i64 0)
  ret i32 0
}

define internal i32 @read_clock(i32 %clock, ptr %time) nounwind {
  %wide = zext i32 %clock to i64
  %address = ptrtoint ptr %time to i64
  %code = call i64 @model_syscall(i64 @SYS_CLOCK@, i64 %wide, i64 %address, i64 0, i64 0, i64 0)
  ret i32 0
}

define internal i32 @processor() nounwind {
  %number_ = alloca i32
  %address = ptrtoint ptr %number_ to i64
  store i32 -1, ptr %number_
  %code = call i64 @model_syscall(i64 @SYS_GETCPU@, i64 %address, i64 0, i64 0, i64 0, i64 0)
  %number = load i32, ptr %number_
  ret i32 %number
}

; As the C library's, it returns 0, and clears the words of processors that the system does not know.
define internal i32 @affinity(i32 %thread, i64 %bytes, ptr %mask) nounwind {
start:
  br label %each
each:
  %word = phi i64 [0, %start], [%next, %each]
  %word_ = getelementptr i64, ptr %mask, i64 %word
  store i64 0, ptr %word_
  %next = add i64 %word, 1
  %more = icmp ult i64 %next, @MASK_WORDS@
  br i1 %more, label %each, label %read
read:
  %number = zext i32 %thread to i64
  %address = ptrtoint ptr %mask to i64
  %written = call i64 @model_syscall(i64 @SYS_GETAFFINITY@, i64 %number, i64 %bytes, i64 %address, i64 0, i64 0)
  %failed = icmp slt i64 %written, 0
  %code = sext i1 %failed to i32
  ret i32 %code
}

define internal i32 @set_affinity(i32 %thread, i64 %bytes, ptr %mask) nounwind {
  %number = zext i32 %thread to i64
  %address = ptrtoint ptr %mask to i64
  %wide = call i64 @model_syscall(i64 @SYS_SETAFFINITY@, i64 %number, i64 %bytes, i64 %address, i64 0, i64 0)
  %code = trunc i64 %wide to i32
  ret i32 %code
}

; Asks for short time slices, as `request_short_slices` of planish.levels.loops.runtime.kernels does. Linux's
; sched_attr has 48 bytes: the policy, 0 for the usual one, is in the second word of 32 bits.
define internal void @request_short_slices() nounwind {
start:
  %attributes = alloca [6 x i64]
  %address = ptrtoint ptr %attributes to i64
  %refused = call i64 @model_syscall(i64 @SYS_GETATTR@, i64 0, i64 %address, i64 48, i64 0, i64 0)
  %is_read = icmp eq i64 %refused, 0
  br i1 %is_read, label %look, label %done
look:
  %policy_ = getelementptr i32, ptr %attributes, i64 1
  %policy = load i32, ptr %policy_
  %is_usual = icmp eq i32 %policy, 0
  br i1 %is_usual, label %ask, label %done
ask:
  %slice_ = getelementptr i64, ptr %attributes, i64 3
  store i64 @SLICE_NS@, ptr %slice_
  %code = call i64 @model_syscall(i64 @SYS_SETATTR@, i64 0, i64 %address, i64 0, i64 0, i64 0)
  br label %done
done:
  ret void
}

; A lock is a word of 32 bits: 1 if it is free, else 0. 128 and 129 are futex's wait and wake, for one process.
define internal i32 @acquire(ptr %lock, i32 %waits) nounwind {
start:
  %address = ptrtoint ptr %lock to i64
  br label %try
try:
  %swap = cmpxchg ptr %lock, i32 1, i32 0 seq_cst seq_cst
  %taken = extractvalue {i32, i1} %swap, 1
  br i1 %taken, label %done, label %wait
wait:
  %code = call i64 @model_syscall(i64 @SYS_FUTEX@, i64 %address, i64 128, i64 0, i64 0, i64 0)
  br label %try
done:
  ret i32 1
}

define internal void @release(ptr %lock) nounwind {
  %before = atomicrmw xchg ptr %lock, i32 1 seq_cst
  %address = ptrtoint ptr %lock to i64
  %code = call i64 @model_syscall(i64 @SYS_FUTEX@, i64 %address, i64 129, i64 1, i64 0, i64 0)
  ret void
}

define internal ptr @worker(ptr %number) nounwind {
  %lane = ptrtoint ptr %number to i64
  call void @request_short_slices()
  %thread = call i64 @model_syscall(i64 @SYS_GETTID@, i64 0, i64 0, i64 0, i64 0, i64 0)
  %line = call ptr @line(ptr @team, i64 %lane)
  %thread_ = getelementptr i64, ptr %line, i64 @lane.thread@
  store atomic i64 %thread, ptr %thread_ seq_cst, align 8
  ; A leader that has placed its threads already did not know this one: it places them again.
  %processor = getelementptr i64, ptr @team, i64 @processor@
  store atomic i64 -1, ptr %processor seq_cst, align 8
  call void @work(ptr @team, i64 %lane)
  ret ptr null
}

; Signals are for the threads of the program: the new ones have all blocked.
define internal void @start(ptr %create) nounwind {
start:
  %all = alloca i64
  %old = alloca i64
  %id = alloca i64
  store i64 -1, ptr %all
  %all_address = ptrtoint ptr %all to i64
  %old_address = ptrtoint ptr %old to i64
  br label %clear
clear:
  %word = phi i64 [0, %start], [%next_word, %clear]
  %word_ = getelementptr i64, ptr @team, i64 %word
  store i64 0, ptr %word_
  %next_word = add i64 %word, 1
  %more_words = icmp ult i64 %next_word, @TEAM_SIZE@
  br i1 %more_words, label %clear, label %block
block:
  %lanes_ = getelementptr i64, ptr @team, i64 @lanes@
  store i64 @LANES@, ptr %lanes_
  %processor = getelementptr i64, ptr @team, i64 @processor@
  store i64 -1, ptr %processor
  %blocked = call i64 @model_syscall(i64 @SYS_SIGMASK@, i64 2, i64 %all_address, i64 %old_address, i64 8, i64 0)
  br label %each
each:
  %lane = phi i64 [0, %block], [%next, %made]
  %line = call ptr @line(ptr @team, i64 %lane)
  %lock = getelementptr i64, ptr %line, i64 @LOCK_WORD@
  %lock_ = getelementptr i64, ptr %line, i64 @lane.lock@
  store ptr %lock, ptr %lock_
  %is_leader = icmp eq i64 %lane, 0
  br i1 %is_leader, label %made, label %make
make:
  %number = inttoptr i64 %lane to ptr
  %failed = call i32 %create(ptr %id, ptr null, ptr @worker, ptr %number)
  br label %made
made:
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, @LANES@
  br i1 %more, label %each, label %restore
restore:
  %unblocked = call i64 @model_syscall(i64 @SYS_SIGMASK@, i64 2, i64 %old_address, i64 0, i64 8, i64 0)
  ret void
}

; Returns whether the calling thread leads the team until it calls disband.
define internal i1 @assemble() nounwind {
start:
  %create = load volatile ptr, ptr @create
  %cannot = icmp eq ptr %create, null
  br i1 %cannot, label %alone, label %look
look:
  %process = call i64 @model_syscall(i64 @SYS_GETPID@, i64 0, i64 0, i64 0, i64 0, i64 0)
  %owner = load atomic i64, ptr @owner acquire, align 8
  %is_ours = icmp eq i64 %owner, %process
  br i1 %is_ours, label %claim, label %first
first:
  %is_made = icmp eq i64 %owner, -1
  br i1 %is_made, label %alone, label %make
make:
  %swap = cmpxchg ptr @owner, i64 %owner, i64 -1 seq_cst seq_cst, align 8
  %mine = extractvalue {i64, i1} %swap, 1
  br i1 %mine, label %threads, label %alone
threads:
  call void @start(ptr %create)
  store atomic i64 %process, ptr @owner release, align 8
  br label %claim
claim:
  %busy = getelementptr i64, ptr @team, i64 @busy@
  %lead = cmpxchg ptr %busy, i64 0, i64 1 acq_rel monotonic, align 8
  %leads = extractvalue {i64, i1} %lead, 1
  br i1 %leads, label %lead_on, label %alone
lead_on:
  call void @keep_off(ptr @team)
  ret i1 true
alone:
  ret i1 false
}

define internal void @disband() nounwind {
  %busy = getelementptr i64, ptr @team, i64 @busy@
  store atomic i64 0, ptr %busy release, align 8
  ret void
}

; Computes iterations of a function by all threads of the team.
define internal void @share(ptr %function, i64 %iterations, ptr %lane_args) nounwind {
start:
  %job = alloca [6 x i64]
  %functions = alloca ptr
  %flags = alloca i64
  %bounds = alloca [@BOUNDS@ x i64]
  store ptr %function, ptr %functions
  store i64 1, ptr %flags
  store i64 1, ptr %job
  %lanes_ = getelementptr i64, ptr %job, i64 1
  store i64 @LANES@, ptr %lanes_
  %args_ = getelementptr i64, ptr %job, i64 2
  store ptr %lane_args, ptr %args_
  %functions_ = getelementptr i64, ptr %job, i64 3
  store ptr %functions, ptr %functions_
  %flags_ = getelementptr i64, ptr %job, i64 4
  store ptr %flags, ptr %flags_
  %bounds_ = getelementptr i64, ptr %job, i64 5
  store ptr %bounds, ptr %bounds_
  br label %each
each:
  %lane = phi i64 [0, %start], [%next, %each]
  %product = mul i64 %iterations, %lane
  %bound = udiv i64 %product, @LANES@
  %slot = getelementptr i64, ptr %bounds, i64 %lane
  store i64 %bound, ptr %slot
  %next = add i64 %lane, 1
  %more = icmp ule i64 %next, @LANES@
  br i1 %more, label %each, label %run
run:
  call void @publish(ptr @team, ptr %job, i64 0)
  call void @finish(ptr @team)
  ret void
}
