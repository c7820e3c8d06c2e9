target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.date = type { i32, i32, i32 }

define i32 @days(ptr noundef %0) minsize optsize {
  %2 = alloca ptr, align 8
  %3 = alloca i32, align 4
  %4 = alloca i32, align 4
  %5 = alloca i32, align 4
  store ptr %0, ptr %2, align 8
  %6 = load ptr, ptr %2, align 8
  %7 = getelementptr inbounds nuw %struct.date, ptr %6, i32 0, i32 2
  %8 = load i32, ptr %7, align 4
  %9 = sub nsw i32 %8, 1
  store i32 %9, ptr %3, align 4
  store i32 1970, ptr %4, align 4
  br label %10

10:
  %11 = load i32, ptr %4, align 4
  %12 = load ptr, ptr %2, align 8
  %13 = getelementptr inbounds nuw %struct.date, ptr %12, i32 0, i32 0
  %14 = load i32, ptr %13, align 4
  %15 = icmp slt i32 %11, %14
  br i1 %15, label %16, label %27

16:
  %17 = load i32, ptr %4, align 4
  %18 = call i32 @is_leap(i32 noundef %17)
  %19 = icmp ne i32 %18, 0
  %20 = zext i1 %19 to i64
  %21 = select i1 %19, i32 366, i32 365
  %22 = load i32, ptr %3, align 4
  %23 = add nsw i32 %22, %21
  store i32 %23, ptr %3, align 4
  br label %24

24:
  %25 = load i32, ptr %4, align 4
  %26 = add nsw i32 %25, 1
  store i32 %26, ptr %4, align 4
  br label %10

27:
  store i32 1, ptr %5, align 4
  br label %28

28:
  %29 = load i32, ptr %5, align 4
  %30 = load ptr, ptr %2, align 8
  %31 = getelementptr inbounds nuw %struct.date, ptr %30, i32 0, i32 1
  %32 = load i32, ptr %31, align 4
  %33 = icmp slt i32 %29, %32
  br i1 %33, label %34, label %56

34:
  %35 = load i32, ptr %5, align 4
  switch i32 %35, label %49 [
    i32 2, label %36
    i32 4, label %46
    i32 6, label %46
    i32 9, label %46
    i32 11, label %46
  ]

36:
  %37 = load ptr, ptr %2, align 8
  %38 = getelementptr inbounds nuw %struct.date, ptr %37, i32 0, i32 0
  %39 = load i32, ptr %38, align 4
  %40 = call i32 @is_leap(i32 noundef %39)
  %41 = icmp ne i32 %40, 0
  %42 = zext i1 %41 to i64
  %43 = select i1 %41, i32 29, i32 28
  %44 = load i32, ptr %3, align 4
  %45 = add nsw i32 %44, %43
  store i32 %45, ptr %3, align 4
  br label %52

46:
  %47 = load i32, ptr %3, align 4
  %48 = add nsw i32 %47, 30
  store i32 %48, ptr %3, align 4
  br label %52

49:
  %50 = load i32, ptr %3, align 4
  %51 = add nsw i32 %50, 31
  store i32 %51, ptr %3, align 4
  br label %52

52:
  br label %53

53:
  %54 = load i32, ptr %5, align 4
  %55 = add nsw i32 %54, 1
  store i32 %55, ptr %5, align 4
  br label %28

56:
  %57 = load i32, ptr %3, align 4
  ret i32 %57
}

declare i32 @is_leap(i32 noundef)
