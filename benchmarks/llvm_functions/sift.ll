target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.entry = type { i32, ptr }

define void @sift(ptr noundef %0, i32 noundef %1, i32 noundef %2) minsize optsize {
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca i32, align 4
  %7 = alloca i32, align 4
  %8 = alloca i32, align 4
  %9 = alloca i32, align 4
  %10 = alloca %struct.entry, align 8
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  store i32 %2, ptr %6, align 4
  br label %11

11:
  %12 = load i32, ptr %6, align 4
  store i32 %12, ptr %7, align 4
  %13 = load i32, ptr %6, align 4
  %14 = mul i32 2, %13
  %15 = add i32 %14, 1
  store i32 %15, ptr %8, align 4
  %16 = load i32, ptr %8, align 4
  %17 = add i32 %16, 1
  store i32 %17, ptr %9, align 4
  %18 = load i32, ptr %8, align 4
  %19 = load i32, ptr %5, align 4
  %20 = icmp ult i32 %18, %19
  br i1 %20, label %21, label %37

21:
  %22 = load ptr, ptr %4, align 8
  %23 = load i32, ptr %8, align 4
  %24 = zext i32 %23 to i64
  %25 = getelementptr inbounds nuw %struct.entry, ptr %22, i64 %24
  %26 = getelementptr inbounds nuw %struct.entry, ptr %25, i32 0, i32 0
  %27 = load i32, ptr %26, align 8
  %28 = load ptr, ptr %4, align 8
  %29 = load i32, ptr %7, align 4
  %30 = zext i32 %29 to i64
  %31 = getelementptr inbounds nuw %struct.entry, ptr %28, i64 %30
  %32 = getelementptr inbounds nuw %struct.entry, ptr %31, i32 0, i32 0
  %33 = load i32, ptr %32, align 8
  %34 = icmp ugt i32 %27, %33
  br i1 %34, label %35, label %37

35:
  %36 = load i32, ptr %8, align 4
  store i32 %36, ptr %7, align 4
  br label %37

37:
  %38 = load i32, ptr %9, align 4
  %39 = load i32, ptr %5, align 4
  %40 = icmp ult i32 %38, %39
  br i1 %40, label %41, label %57

41:
  %42 = load ptr, ptr %4, align 8
  %43 = load i32, ptr %9, align 4
  %44 = zext i32 %43 to i64
  %45 = getelementptr inbounds nuw %struct.entry, ptr %42, i64 %44
  %46 = getelementptr inbounds nuw %struct.entry, ptr %45, i32 0, i32 0
  %47 = load i32, ptr %46, align 8
  %48 = load ptr, ptr %4, align 8
  %49 = load i32, ptr %7, align 4
  %50 = zext i32 %49 to i64
  %51 = getelementptr inbounds nuw %struct.entry, ptr %48, i64 %50
  %52 = getelementptr inbounds nuw %struct.entry, ptr %51, i32 0, i32 0
  %53 = load i32, ptr %52, align 8
  %54 = icmp ugt i32 %47, %53
  br i1 %54, label %55, label %57

55:
  %56 = load i32, ptr %9, align 4
  store i32 %56, ptr %7, align 4
  br label %57

57:
  %58 = load i32, ptr %7, align 4
  %59 = load i32, ptr %6, align 4
  %60 = icmp eq i32 %58, %59
  br i1 %60, label %61, label %62

61:
  ret void

62:
  %63 = load ptr, ptr %4, align 8
  %64 = load i32, ptr %6, align 4
  %65 = zext i32 %64 to i64
  %66 = getelementptr inbounds nuw %struct.entry, ptr %63, i64 %65
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %10, ptr align 8 %66, i64 16, i1 false)
  %67 = load ptr, ptr %4, align 8
  %68 = load i32, ptr %6, align 4
  %69 = zext i32 %68 to i64
  %70 = getelementptr inbounds nuw %struct.entry, ptr %67, i64 %69
  %71 = load ptr, ptr %4, align 8
  %72 = load i32, ptr %7, align 4
  %73 = zext i32 %72 to i64
  %74 = getelementptr inbounds nuw %struct.entry, ptr %71, i64 %73
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %70, ptr align 8 %74, i64 16, i1 false)
  %75 = load ptr, ptr %4, align 8
  %76 = load i32, ptr %7, align 4
  %77 = zext i32 %76 to i64
  %78 = getelementptr inbounds nuw %struct.entry, ptr %75, i64 %77
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %78, ptr align 8 %10, i64 16, i1 false)
  %79 = load i32, ptr %7, align 4
  store i32 %79, ptr %6, align 4
  br label %11
}

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)
