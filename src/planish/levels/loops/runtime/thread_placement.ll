; Functions of planish.levels.loops.runtime.kernels, which move threads to processors.

; Linux may wake a thread on the processor of the one that wakes it, though another is idle, and moves it away
; only some tenths of a second later. So workers are kept off the leader's processor, unless there are more of
; them than other processors: then two would share one.
define internal void @keep_off(ptr %team) {
start:
  %now = call i32 @GETCPU@()
  %processor = sext i32 %now to i64
  %known_ = getelementptr i64, ptr %team, i64 @processor@
  %known = load i64, ptr %known_
  %same = icmp eq i64 %processor, %known
  %holds = icmp ult i64 %processor, @MASK_BITS@
  %new = xor i1 %same, true
  %act = and i1 %new, %holds
  br i1 %act, label %ask, label %done
ask:
  store i64 %processor, ptr %known_
  %mask = getelementptr i64, ptr %team, i64 @mask@
  %code = call i32 @GETAFFINITY@(i32 0, i64 @MASK_BYTES@, ptr %mask)
  %read = icmp eq i32 %code, 0
  br i1 %read, label %each_word, label %done
each_word:
  %w = phi i64 [0, %ask], [%next_word, %each_word]
  %sum = phi i64 [0, %ask], [%count, %each_word]
  %word_ = getelementptr i64, ptr %mask, i64 %w
  %word = load i64, ptr %word_
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %count = add i64 %sum, %bits
  %next_word = add i64 %w, 1
  %last = icmp eq i64 %next_word, @MASK_WORDS@
  br i1 %last, label %counted, label %each_word
counted:
  %lanes_ = getelementptr i64, ptr %team, i64 @lanes@
  %lanes = load i64, ptr %lanes_
  %enough = icmp uge i64 %count, %lanes
  br i1 %enough, label %clear, label %each
clear:
  %place = lshr i64 %processor, 6
  %bit = and i64 %processor, 63
  %own = shl i64 1, %bit
  %others = xor i64 %own, -1
  %cleared_ = getelementptr i64, ptr %mask, i64 %place
  %all = load i64, ptr %cleared_
  %cleared = and i64 %all, %others
  store i64 %cleared, ptr %cleared_
  br label %each
each:
  %lane = phi i64 [1, %counted], [1, %clear], [%next, %set]
  %over = icmp uge i64 %lane, %lanes
  br i1 %over, label %done, label %look
look:
  %line = call ptr @line(ptr %team, i64 %lane)
  %thread_ = getelementptr i64, ptr %line, i64 @lane.thread@
  %thread = load i64, ptr %thread_
  %known_thread = icmp ne i64 %thread, 0
  br i1 %known_thread, label %move, label %set
move:
  %number = trunc i64 %thread to i32
  %ignored = call i32 @SETAFFINITY@(i32 %number, i64 @MASK_BYTES@, ptr %mask)
  br label %set
set:
  %next = add i64 %lane, 1
  br label %each
done:
  ret void
}

define internal i1 @only_here(ptr %mask) {
start:
  %now = call i32 @GETCPU@()
  %processor = sext i32 %now to i64
  %holds = icmp ult i64 %processor, @MASK_BITS@
  br i1 %holds, label %each, label %done
each:
  %w = phi i64 [0, %start], [%next, %each]
  %word_ = getelementptr i64, ptr %mask, i64 %w
  store i64 0, ptr %word_
  %next = add i64 %w, 1
  %last = icmp eq i64 %next, @MASK_WORDS@
  br i1 %last, label %set, label %each
set:
  %place = lshr i64 %processor, 6
  %bit = and i64 %processor, 63
  %own = shl i64 1, %bit
  %own_ = getelementptr i64, ptr %mask, i64 %place
  store i64 %own, ptr %own_
  br label %done
done:
  ret i1 %holds
}
declare i64 @llvm.ctpop.i64(i64)

; The number of a thread's processor clock: see clock_getcpuclockid(3), and Linux's posix-timers.h.
define internal i1 @move_stopped(ptr %team) {
start:
  %lanes_ = getelementptr i64, ptr %team, i64 @lanes@
  %lanes = load i64, ptr %lanes_
  %mask = getelementptr i64, ptr %team, i64 @mask@
  br label %each
each:
  %lane = phi i64 [1, %start], [%next, %next_lane]
  %any = phi i1 [false, %start], [%found, %next_lane]
  %over = icmp uge i64 %lane, %lanes
  br i1 %over, label %done, label %look
look:
  %line = call ptr @line(ptr %team, i64 %lane)
  %computes_ = getelementptr i64, ptr %line, i64 @lane.computes@
  %computes = load atomic i64, ptr %computes_ monotonic, align 8
  %is_at_work = icmp ne i64 %computes, 0
  br i1 %is_at_work, label %read, label %next_lane
read:
  %thread_ = getelementptr i64, ptr %line, i64 @lane.thread@
  %thread = load i64, ptr %thread_
  %number = trunc i64 %thread to i32
  %inverse = xor i32 %number, -1
  %high = shl i32 %inverse, 3
  %clock = or i32 %high, 6
  %now = call i64 @now(i32 %clock)
  %time_ = getelementptr i64, ptr %line, i64 @lane.time@
  %before = load i64, ptr %time_
  store i64 %now, ptr %time_
  %stands = icmp eq i64 %now, %before
  %has_time = icmp sgt i64 %now, 0
  %stopped = and i1 %stands, %has_time
  br i1 %stopped, label %here, label %next_lane
here:
  %known = call i1 @only_here(ptr %mask)
  br i1 %known, label %move, label %next_lane
move:
  %moved_ = getelementptr i64, ptr %line, i64 @lane.moved@
  store atomic i64 1, ptr %moved_ monotonic, align 8
  %code = call i32 @SETAFFINITY@(i32 %number, i64 @MASK_BYTES@, ptr %mask)
  %processor = getelementptr i64, ptr %team, i64 @processor@
  store i64 -1, ptr %processor
  %is_here = icmp eq i32 %code, 0
  %can = or i1 %any, %is_here
  br label %next_lane
next_lane:
  %found = phi i1 [%any, %look], [%any, %read], [%any, %here], [%can, %move]
  %next = add i64 %lane, 1
  br label %each
done:
  ret i1 %any
}
