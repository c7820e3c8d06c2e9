target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

define i64 @utf8(ptr noundef %0, ptr noundef %1) minsize optsize {
  %3 = alloca i64, align 8
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca i64, align 8
  %8 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  %9 = load ptr, ptr %4, align 8
  %10 = load ptr, ptr %9, align 8
  store ptr %10, ptr %6, align 8
  %11 = load ptr, ptr %6, align 8
  %12 = load ptr, ptr %5, align 8
  %13 = icmp uge ptr %11, %12
  br i1 %13, label %14, label %15

14:
  store i64 -1, ptr %3, align 8
  br label %91

15:
  %16 = load ptr, ptr %6, align 8
  %17 = load i8, ptr %16, align 1
  %18 = zext i8 %17 to i32
  %19 = icmp slt i32 %18, 128
  br i1 %19, label %20, label %24

20:
  %21 = load ptr, ptr %6, align 8
  %22 = load i8, ptr %21, align 1
  %23 = zext i8 %22 to i64
  store i64 %23, ptr %7, align 8
  store i32 0, ptr %8, align 4
  br label %56

24:
  %25 = load ptr, ptr %6, align 8
  %26 = load i8, ptr %25, align 1
  %27 = zext i8 %26 to i32
  %28 = and i32 %27, 224
  %29 = icmp eq i32 %28, 192
  br i1 %29, label %30, label %36

30:
  %31 = load ptr, ptr %6, align 8
  %32 = load i8, ptr %31, align 1
  %33 = zext i8 %32 to i32
  %34 = and i32 %33, 31
  %35 = sext i32 %34 to i64
  store i64 %35, ptr %7, align 8
  store i32 1, ptr %8, align 4
  br label %55

36:
  %37 = load ptr, ptr %6, align 8
  %38 = load i8, ptr %37, align 1
  %39 = zext i8 %38 to i32
  %40 = and i32 %39, 240
  %41 = icmp eq i32 %40, 224
  br i1 %41, label %42, label %48

42:
  %43 = load ptr, ptr %6, align 8
  %44 = load i8, ptr %43, align 1
  %45 = zext i8 %44 to i32
  %46 = and i32 %45, 15
  %47 = sext i32 %46 to i64
  store i64 %47, ptr %7, align 8
  store i32 2, ptr %8, align 4
  br label %54

48:
  %49 = load ptr, ptr %6, align 8
  %50 = load i8, ptr %49, align 1
  %51 = zext i8 %50 to i32
  %52 = and i32 %51, 7
  %53 = sext i32 %52 to i64
  store i64 %53, ptr %7, align 8
  store i32 3, ptr %8, align 4
  br label %54

54:
  br label %55

55:
  br label %56

56:
  %57 = load ptr, ptr %6, align 8
  %58 = getelementptr inbounds nuw i8, ptr %57, i32 1
  store ptr %58, ptr %6, align 8
  br label %59

59:
  %60 = load i32, ptr %8, align 4
  %61 = icmp sgt i32 %60, 0
  br i1 %61, label %62, label %87

62:
  %63 = load ptr, ptr %6, align 8
  %64 = load ptr, ptr %5, align 8
  %65 = icmp uge ptr %63, %64
  br i1 %65, label %72, label %66

66:
  %67 = load ptr, ptr %6, align 8
  %68 = load i8, ptr %67, align 1
  %69 = zext i8 %68 to i32
  %70 = and i32 %69, 192
  %71 = icmp ne i32 %70, 128
  br i1 %71, label %72, label %73

72:
  store i64 -2, ptr %3, align 8
  br label %91

73:
  %74 = load i64, ptr %7, align 8
  %75 = shl i64 %74, 6
  %76 = load ptr, ptr %6, align 8
  %77 = load i8, ptr %76, align 1
  %78 = zext i8 %77 to i32
  %79 = and i32 %78, 63
  %80 = sext i32 %79 to i64
  %81 = or i64 %75, %80
  store i64 %81, ptr %7, align 8
  br label %82

82:
  %83 = load i32, ptr %8, align 4
  %84 = add nsw i32 %83, -1
  store i32 %84, ptr %8, align 4
  %85 = load ptr, ptr %6, align 8
  %86 = getelementptr inbounds nuw i8, ptr %85, i32 1
  store ptr %86, ptr %6, align 8
  br label %59

87:
  %88 = load ptr, ptr %6, align 8
  %89 = load ptr, ptr %4, align 8
  store ptr %88, ptr %89, align 8
  %90 = load i64, ptr %7, align 8
  store i64 %90, ptr %3, align 8
  br label %91

91:
  %92 = load i64, ptr %3, align 8
  ret i64 %92
}
