target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define ptr @trim(ptr noundef %0, ptr noundef %1) minsize optsize {
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca i64, align 8
  %7 = alloca i64, align 8
  %8 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  store i64 0, ptr %6, align 8
  %9 = load ptr, ptr %4, align 8
  %10 = call i64 @strlen(ptr noundef %9)
  store i64 %10, ptr %7, align 8
  br label %11

11:
  %12 = load i64, ptr %6, align 8
  %13 = load i64, ptr %7, align 8
  %14 = icmp ult i64 %12, %13
  br i1 %14, label %15, label %24

15:
  %16 = load ptr, ptr %5, align 8
  %17 = load ptr, ptr %4, align 8
  %18 = load i64, ptr %6, align 8
  %19 = getelementptr inbounds nuw i8, ptr %17, i64 %18
  %20 = load i8, ptr %19, align 1
  %21 = sext i8 %20 to i32
  %22 = call ptr @strchr(ptr noundef %16, i32 noundef %21)
  %23 = icmp ne ptr %22, null
  br label %24

24:
  %25 = phi i1 [ false, %11 ], [ %23, %15 ]
  br i1 %25, label %26, label %29

26:
  %27 = load i64, ptr %6, align 8
  %28 = add i64 %27, 1
  store i64 %28, ptr %6, align 8
  br label %11

29:
  br label %30

30:
  %31 = load i64, ptr %7, align 8
  %32 = load i64, ptr %6, align 8
  %33 = icmp ugt i64 %31, %32
  br i1 %33, label %34, label %44

34:
  %35 = load ptr, ptr %5, align 8
  %36 = load ptr, ptr %4, align 8
  %37 = load i64, ptr %7, align 8
  %38 = sub i64 %37, 1
  %39 = getelementptr inbounds nuw i8, ptr %36, i64 %38
  %40 = load i8, ptr %39, align 1
  %41 = sext i8 %40 to i32
  %42 = call ptr @strchr(ptr noundef %35, i32 noundef %41)
  %43 = icmp ne ptr %42, null
  br label %44

44:
  %45 = phi i1 [ false, %30 ], [ %43, %34 ]
  br i1 %45, label %46, label %49

46:
  %47 = load i64, ptr %7, align 8
  %48 = add i64 %47, -1
  store i64 %48, ptr %7, align 8
  br label %30

49:
  %50 = load i64, ptr %7, align 8
  %51 = load i64, ptr %6, align 8
  %52 = sub i64 %50, %51
  %53 = add i64 %52, 1
  %54 = call noalias ptr @malloc(i64 noundef %53)
  store ptr %54, ptr %8, align 8
  %55 = load ptr, ptr %8, align 8
  %56 = icmp ne ptr %55, null
  br i1 %56, label %58, label %57

57:
  store ptr null, ptr %3, align 8
  br label %72

58:
  %59 = load ptr, ptr %8, align 8
  %60 = load ptr, ptr %4, align 8
  %61 = load i64, ptr %6, align 8
  %62 = getelementptr inbounds nuw i8, ptr %60, i64 %61
  %63 = load i64, ptr %7, align 8
  %64 = load i64, ptr %6, align 8
  %65 = sub i64 %63, %64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %59, ptr align 1 %62, i64 %65, i1 false)
  %66 = load ptr, ptr %8, align 8
  %67 = load i64, ptr %7, align 8
  %68 = load i64, ptr %6, align 8
  %69 = sub i64 %67, %68
  %70 = getelementptr inbounds nuw i8, ptr %66, i64 %69
  store i8 0, ptr %70, align 1
  %71 = load ptr, ptr %8, align 8
  store ptr %71, ptr %3, align 8
  br label %72

72:
  %73 = load ptr, ptr %3, align 8
  ret ptr %73
}

declare i64 @strlen(ptr noundef)

declare ptr @strchr(ptr noundef, i32 noundef)

declare noalias ptr @malloc(i64 noundef)

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)
