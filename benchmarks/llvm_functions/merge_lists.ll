target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { ptr, i64 }

define ptr @merge_lists(ptr noundef %0, ptr noundef %1) minsize optsize {
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  %5 = alloca %struct.node, align 8
  %6 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  store ptr %1, ptr %4, align 8
  store ptr %5, ptr %6, align 8
  %7 = getelementptr inbounds nuw %struct.node, ptr %5, i32 0, i32 0
  store ptr null, ptr %7, align 8
  br label %8

8:
  %9 = load ptr, ptr %3, align 8
  %10 = icmp ne ptr %9, null
  br i1 %10, label %11, label %14

11:
  %12 = load ptr, ptr %4, align 8
  %13 = icmp ne ptr %12, null
  br label %14

14:
  %15 = phi i1 [ false, %8 ], [ %13, %11 ]
  br i1 %15, label %16, label %42

16:
  %17 = load ptr, ptr %3, align 8
  %18 = getelementptr inbounds nuw %struct.node, ptr %17, i32 0, i32 1
  %19 = load i64, ptr %18, align 8
  %20 = load ptr, ptr %4, align 8
  %21 = getelementptr inbounds nuw %struct.node, ptr %20, i32 0, i32 1
  %22 = load i64, ptr %21, align 8
  %23 = icmp sle i64 %19, %22
  br i1 %23, label %24, label %31

24:
  %25 = load ptr, ptr %3, align 8
  %26 = load ptr, ptr %6, align 8
  %27 = getelementptr inbounds nuw %struct.node, ptr %26, i32 0, i32 0
  store ptr %25, ptr %27, align 8
  %28 = load ptr, ptr %3, align 8
  %29 = getelementptr inbounds nuw %struct.node, ptr %28, i32 0, i32 0
  %30 = load ptr, ptr %29, align 8
  store ptr %30, ptr %3, align 8
  br label %38

31:
  %32 = load ptr, ptr %4, align 8
  %33 = load ptr, ptr %6, align 8
  %34 = getelementptr inbounds nuw %struct.node, ptr %33, i32 0, i32 0
  store ptr %32, ptr %34, align 8
  %35 = load ptr, ptr %4, align 8
  %36 = getelementptr inbounds nuw %struct.node, ptr %35, i32 0, i32 0
  %37 = load ptr, ptr %36, align 8
  store ptr %37, ptr %4, align 8
  br label %38

38:
  %39 = load ptr, ptr %6, align 8
  %40 = getelementptr inbounds nuw %struct.node, ptr %39, i32 0, i32 0
  %41 = load ptr, ptr %40, align 8
  store ptr %41, ptr %6, align 8
  br label %8

42:
  %43 = load ptr, ptr %3, align 8
  %44 = icmp ne ptr %43, null
  br i1 %44, label %45, label %47

45:
  %46 = load ptr, ptr %3, align 8
  br label %49

47:
  %48 = load ptr, ptr %4, align 8
  br label %49

49:
  %50 = phi ptr [ %46, %45 ], [ %48, %47 ]
  %51 = load ptr, ptr %6, align 8
  %52 = getelementptr inbounds nuw %struct.node, ptr %51, i32 0, i32 0
  store ptr %50, ptr %52, align 8
  %53 = getelementptr inbounds nuw %struct.node, ptr %5, i32 0, i32 0
  %54 = load ptr, ptr %53, align 8
  ret ptr %54
}
