; Functions of planish.levels.loops.runtime.kernels, which share jobs among the threads of a team.
; Names between @ signs are replaced before the text is compiled.

define internal void @part(ptr %job, i64 %entry, i64 %lane, i64 %begin, i64 %end) {
  %args_ = getelementptr ptr, ptr %job, i64 2
  %all = load ptr, ptr %args_
  %mine = getelementptr ptr, ptr %all, i64 %lane
  %args = load ptr, ptr %mine
  %functions_ = getelementptr ptr, ptr %job, i64 3
  %functions = load ptr, ptr %functions_
  %function_ = getelementptr ptr, ptr %functions, i64 %entry
  %function = load ptr, ptr %function_
  call void %function(ptr %args, i64 %begin, i64 %end)
  ret void
}

define internal ptr @shares(ptr %job, i64 %entry) {
  %lanes_ = getelementptr i64, ptr %job, i64 1
  %lanes = load i64, ptr %lanes_
  %bounds_ = getelementptr ptr, ptr %job, i64 5
  %bounds = load ptr, ptr %bounds_
  %width = add i64 %lanes, 1
  %row = mul i64 %entry, %width
  %shares = getelementptr i64, ptr %bounds, i64 %row
  ret ptr %shares
}

define internal void @whole(ptr %job, i64 %entry) {
  %lanes_ = getelementptr i64, ptr %job, i64 1
  %lanes = load i64, ptr %lanes_
  %begin_ = call ptr @shares(ptr %job, i64 %entry)
  %end_ = getelementptr i64, ptr %begin_, i64 %lanes
  %begin = load i64, ptr %begin_
  %end = load i64, ptr %end_
  call void @part(ptr %job, i64 %entry, i64 0, i64 %begin, i64 %end)
  ret void
}

define internal i1 @is_parallel(ptr %job, i64 %entry) {
  %parallel_ = getelementptr ptr, ptr %job, i64 4
  %parallel = load ptr, ptr %parallel_
  %flag_ = getelementptr i64, ptr %parallel, i64 %entry
  %flag = load i64, ptr %flag_
  %yes = icmp ne i64 %flag, 0
  ret i1 %yes
}

define void @repeat(ptr %job, i64 %times) {
start:
  %entries = load i64, ptr %job
  %total = mul i64 %times, %entries
  %none = icmp eq i64 %total, 0
  br i1 %none, label %end, label %each
each:
  %i = phi i64 [0, %start], [%next, %each]
  %entry = urem i64 %i, %entries
  call void @whole(ptr %job, i64 %entry)
  %next = add i64 %i, 1
  %finished = icmp eq i64 %next, %total
  br i1 %finished, label %end, label %each
end:
  ret void
}

; What a thread writes in a chunk is visible to a thread that then loads the lower `pending` with acquire.
define internal ptr @line(ptr %team, i64 %lane) {
  %past = mul i64 %lane, @LANE_WORDS@
  %place = add i64 %past, @TEAM_WORDS@
  %line = getelementptr i64, ptr %team, i64 %place
  ret ptr %line
}

define internal {i64, i64} @claim(ptr %range_, i1 %is_back) {
start:
  %first = load atomic i64, ptr %range_ acquire, align 8
  br label %look
look:
  %range = phi i64 [%first, %start], [%newer, %take]
  %begin = and i64 %range, 4294967295
  %end = lshr i64 %range, 32
  %left = sub i64 %end, %begin
  %some = icmp sgt i64 %left, 0
  br i1 %some, label %take, label %none
take:
  %rounded = add i64 %left, 1
  %count = lshr i64 %rounded, 1
  %after = add i64 %begin, %count
  %before = sub i64 %end, %count
  %rest_begin = select i1 %is_back, i64 %begin, i64 %after
  %rest_end = select i1 %is_back, i64 %before, i64 %end
  %high = shl i64 %rest_end, 32
  %rest = or i64 %high, %rest_begin
  %swap = cmpxchg ptr %range_, i64 %range, i64 %rest acq_rel acquire, align 8
  %newer = extractvalue {i64, i1} %swap, 0
  %taken = extractvalue {i64, i1} %swap, 1
  br i1 %taken, label %mine, label %look
mine:
  %chunk_begin = select i1 %is_back, i64 %before, i64 %begin
  %chunk_end = select i1 %is_back, i64 %end, i64 %after
  %chunk_ = insertvalue {i64, i64} zeroinitializer, i64 %chunk_begin, 0
  %chunk = insertvalue {i64, i64} %chunk_, i64 %chunk_end, 1
  ret {i64, i64} %chunk
none:
  ret {i64, i64} zeroinitializer
}

define internal void @drain(ptr %team, i64 %lane) {
start:
  %lanes_ = getelementptr i64, ptr %team, i64 @lanes@
  %lanes = load i64, ptr %lanes_
  %pending = getelementptr i64, ptr %team, i64 @pending@
  %job_ = getelementptr ptr, ptr %team, i64 @job@
  %entry_ = getelementptr i64, ptr %team, i64 @entry@
  br label %each
each:
  %offset = phi i64 [0, %start], [%further, %empty]
  %over = icmp eq i64 %offset, %lanes
  br i1 %over, label %done, label %whose
whose:
  %sum = add i64 %lane, %offset
  %owner = urem i64 %sum, %lanes
  %line = call ptr @line(ptr %team, i64 %owner)
  %range_ = getelementptr i64, ptr %line, i64 @lane.range@
  %is_back = icmp ne i64 %offset, 0
  br label %take
take:
  %chunk = call {i64, i64} @claim(ptr %range_, i1 %is_back)
  %begin = extractvalue {i64, i64} %chunk, 0
  %end = extractvalue {i64, i64} %chunk, 1
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %run, label %empty
run:
  %job = load ptr, ptr %job_
  %entry = load i64, ptr %entry_
  call void @part(ptr %job, i64 %entry, i64 %lane, i64 %begin, i64 %end)
  %size = sub i64 %end, %begin
  %before = atomicrmw sub ptr %pending, i64 %size seq_cst
  %is_last = icmp eq i64 %before, %size
  br i1 %is_last, label %last, label %take
last:
  call void @wake_lane(ptr %team, i64 0)
  br label %take
empty:
  %further = add i64 %offset, 1
  br label %each
done:
  ret void
}

define internal void @wake_lane(ptr %team, i64 %lane) {
  %line = call ptr @line(ptr %team, i64 %lane)
  %asleep_ = getelementptr i64, ptr %line, i64 @lane.asleep@
  %asleep = load atomic i64, ptr %asleep_ seq_cst, align 8
  %sleeps = icmp ne i64 %asleep, 0
  br i1 %sleeps, label %try, label %done
try:
  %mark = atomicrmw xchg ptr %asleep_, i64 0 seq_cst
  %still = icmp ne i64 %mark, 0
  br i1 %still, label %free, label %done
free:
  %lock_ = getelementptr ptr, ptr %line, i64 @lane.lock@
  %lock = load ptr, ptr %lock_
  call void @RELEASE@(ptr %lock)
  br label %done
done:
  ret void
}

define internal void @sleep(ptr %team, i64 %lane, i64 %word, i64 %known) {
  %line = call ptr @line(ptr %team, i64 %lane)
  %asleep_ = getelementptr i64, ptr %line, i64 @lane.asleep@
  %lock_ = getelementptr ptr, ptr %line, i64 @lane.lock@
  %lock = load ptr, ptr %lock_
  %word_ = getelementptr i64, ptr %team, i64 %word
  %mark = atomicrmw xchg ptr %asleep_, i64 1 seq_cst
  %newest = load atomic i64, ptr %word_ seq_cst, align 8
  %missed = icmp ne i64 %newest, %known
  br i1 %missed, label %withdraw, label %wait
withdraw:
  %swap = cmpxchg ptr %asleep_, i64 1, i64 0 seq_cst seq_cst, align 8
  %stays = extractvalue {i64, i1} %swap, 1
  br i1 %stays, label %done, label %wait
wait:
  %taken = call i32 @ACQUIRE@(ptr %lock, i32 1)
  br label %done
done:
  ret void
}

define internal void @wake(ptr %team) {
start:
  %lanes_ = getelementptr i64, ptr %team, i64 @lanes@
  %lanes = load i64, ptr %lanes_
  br label %each
each:
  %lane = phi i64 [1, %start], [%next, %look]
  %over = icmp uge i64 %lane, %lanes
  br i1 %over, label %done, label %look
look:
  call void @wake_lane(ptr %team, i64 %lane)
  %next = add i64 %lane, 1
  br label %each
done:
  ret void
}

define internal void @publish(ptr %team, ptr %job, i64 %entry) {
start:
  %lanes_ = getelementptr i64, ptr %team, i64 @lanes@
  %lanes = load i64, ptr %lanes_
  %shares = call ptr @shares(ptr %job, i64 %entry)
  %last_ = getelementptr i64, ptr %shares, i64 %lanes
  %last = load i64, ptr %last_
  %first = load i64, ptr %shares
  %count = sub i64 %last, %first
  %job_ = getelementptr ptr, ptr %team, i64 @job@
  %entry_ = getelementptr i64, ptr %team, i64 @entry@
  %pending = getelementptr i64, ptr %team, i64 @pending@
  %generation = getelementptr i64, ptr %team, i64 @generation@
  store ptr %job, ptr %job_
  store i64 %entry, ptr %entry_
  store atomic i64 %count, ptr %pending monotonic, align 8
  br label %each
each:
  %lane = phi i64 [0, %start], [%next, %each]
  %begin_ = getelementptr i64, ptr %shares, i64 %lane
  %next = add i64 %lane, 1
  %end_ = getelementptr i64, ptr %shares, i64 %next
  %begin = load i64, ptr %begin_
  %end = load i64, ptr %end_
  %high = shl i64 %end, 32
  %range = or i64 %high, %begin
  %line = call ptr @line(ptr %team, i64 %lane)
  %range_ = getelementptr i64, ptr %line, i64 @lane.range@
  store atomic i64 %range, ptr %range_ release, align 8
  %over = icmp eq i64 %next, %lanes
  br i1 %over, label %raise, label %each
raise:
  %before = atomicrmw add ptr %generation, i64 1 seq_cst
  call void @wake(ptr %team)
  ret void
}

define internal void @finish(ptr %team) {
start:
  call void @drain(ptr %team, i64 0)
  %pending = getelementptr i64, ptr %team, i64 @pending@
  br label %wait
wait:
  %spins = phi i64 [0, %start], [%more, %again]
  %left = load atomic i64, ptr %pending acquire, align 8
  %ready = icmp eq i64 %left, 0
  br i1 %ready, label %done, label %look
look:
  @PAUSE@
  %more = add i64 %spins, 1
  %part = urem i64 %more, @CHECKS@
  %due = icmp eq i64 %part, 0
  br i1 %due, label %check, label %again
check:
  %moved = call i1 @move_stopped(ptr %team)
  br i1 %moved, label %sleep, label %stay
sleep:
  call void @sleep(ptr %team, i64 0, i64 @pending@, i64 %left)
  br label %again
stay:
  %long = icmp ugt i64 %spins, @SPINS@
  br i1 %long, label %give, label %again
give:
  %ignored = call i32 @YIELD@()
  br label %again
again:
  br label %wait
done:
  ret void
}

define void @lead(ptr %team, ptr %job, i64 %times) {
start:
  %busy = getelementptr i64, ptr %team, i64 @busy@
  %swap = cmpxchg ptr %busy, i64 0, i64 1 acq_rel monotonic, align 8
  %mine = extractvalue {i64, i1} %swap, 1
  br i1 %mine, label %ready, label %alone
alone:
  call void @repeat(ptr %job, i64 %times)
  ret void
ready:
  call void @keep_off(ptr %team)
  %entries = load i64, ptr %job
  %total = mul i64 %times, %entries
  %none = icmp eq i64 %total, 0
  br i1 %none, label %end, label %each
each:
  %i = phi i64 [0, %ready], [%next, %done]
  %entry = urem i64 %i, %entries
  %shared = call i1 @is_parallel(ptr %job, i64 %entry)
  br i1 %shared, label %share, label %serial
serial:
  call void @whole(ptr %job, i64 %entry)
  br label %done
share:
  call void @publish(ptr %team, ptr %job, i64 %entry)
  call void @finish(ptr %team)
  br label %done
done:
  %next = add i64 %i, 1
  %finished = icmp eq i64 %next, %total
  br i1 %finished, label %end, label %each
end:
  store atomic i64 0, ptr %busy release, align 8
  ret void
}

define void @end(ptr %team) {
  %ended = getelementptr i64, ptr %team, i64 @ended@
  %generation = getelementptr i64, ptr %team, i64 @generation@
  store i64 1, ptr %ended
  %before = atomicrmw add ptr %generation, i64 1 seq_cst
  call void @wake(ptr %team)
  ret void
}

define void @work(ptr %team, i64 %lane) {
start:
  %generation = getelementptr i64, ptr %team, i64 @generation@
  %busy = getelementptr i64, ptr %team, i64 @busy@
  %ended = getelementptr i64, ptr %team, i64 @ended@
  %line = call ptr @line(ptr %team, i64 %lane)
  %computes_ = getelementptr i64, ptr %line, i64 @lane.computes@
  %moved_ = getelementptr i64, ptr %line, i64 @lane.moved@
  br label %look
look:
  %known = phi i64 [0, %start], [%now, %ran], [%known, %idle], [%known, %led], [%known, %calm],
      [%known_now, %sleep]
  %spins = phi i64 [0, %start], [0, %ran], [%more, %idle], [%more, %led], [%more, %calm], [0, %sleep]
  %shared = phi i64 [0, %start], [%shared, %ran], [%shared, %idle], [%shared, %led], [%shared, %calm],
      [%until, %sleep]
  %span = phi i64 [@LEAST_SHARED_NS@, %start], [%span, %ran], [%span, %idle], [%span, %led],
      [@LEAST_SHARED_NS@, %calm], [%next_span, %sleep]
  %now = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %now, %known
  br i1 %new, label %take, label %idle
take:
  %stop = load i64, ptr %ended
  %stops = icmp ne i64 %stop, 0
  br i1 %stops, label %end, label %run
run:
  store atomic i64 1, ptr %computes_ monotonic, align 8
  call void @drain(ptr %team, i64 %lane)
  store atomic i64 0, ptr %computes_ monotonic, align 8
  %moved = load atomic i64, ptr %moved_ monotonic, align 8
  %is_moved = icmp ne i64 %moved, 0
  br i1 %is_moved, label %came_back, label %ran
ran:
  br label %look
came_back:
  store atomic i64 0, ptr %moved_ monotonic, align 8
  %then = call i64 @now(i32 @MONOTONIC@)
  br label %wanted
idle:
  @PAUSE@
  %more = add i64 %spins, 1
  %part = urem i64 %more, @LOOKS@
  %due = icmp eq i64 %part, 0
  br i1 %due, label %long, label %look
long:
  %is_long = icmp ugt i64 %more, @SPINS@
  br i1 %is_long, label %patient, label %led
patient:
  %is_longer = icmp ule i64 %more, @LED_SPINS@
  %leads_on = load atomic i64, ptr %busy monotonic, align 8
  %is_led_on = icmp ne i64 %leads_on, 0
  %goes_on = and i1 %is_longer, %is_led_on
  br i1 %goes_on, label %remember, label %sleep
led:
  %leads = load atomic i64, ptr %busy monotonic, align 8
  %is_led = icmp ne i64 %leads, 0
  br i1 %is_led, label %look, label %remember
remember:
  %before = call i64 @now(i32 @MONOTONIC@)
  %is_shared = icmp slt i64 %before, %shared
  br i1 %is_shared, label %sleep, label %give
give:
  %ignored = call i32 @YIELD@()
  %after = call i64 @now(i32 @MONOTONIC@)
  %away = sub i64 %after, %before
  %is_wanted = icmp sgt i64 %away, @WANTED_NS@
  br i1 %is_wanted, label %wanted, label %calm
calm:
  br label %look
wanted:
  %known_then = phi i64 [%now, %came_back], [%known, %give]
  %start_ns = phi i64 [%then, %came_back], [%after, %give]
  %later = add i64 %start_ns, %span
  %twice = shl i64 %span, 1
  %is_most = icmp ugt i64 %twice, @MOST_SHARED_NS@
  %longer = select i1 %is_most, i64 @MOST_SHARED_NS@, i64 %twice
  br label %sleep
sleep:
  %known_now = phi i64 [%known, %patient], [%known, %remember], [%known_then, %wanted]
  %until = phi i64 [%shared, %patient], [%shared, %remember], [%later, %wanted]
  %next_span = phi i64 [%span, %patient], [%span, %remember], [%longer, %wanted]
  call void @sleep(ptr %team, i64 %lane, i64 @generation@, i64 %known_now)
  br label %look
end:
  ret void
}
