target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@digits = external constant [64 x i8], align 16

define i32 @base64(ptr noundef %0, i32 noundef %1, ptr noundef %2) minsize optsize {
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca i32, align 4
  %9 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  store ptr %2, ptr %6, align 8
  %10 = load ptr, ptr %6, align 8
  store ptr %10, ptr %7, align 8
  br label %11

11:
  %12 = load i32, ptr %5, align 4
  %13 = icmp sge i32 %12, 3
  br i1 %13, label %14, label %66

14:
  %15 = load ptr, ptr %4, align 8
  %16 = getelementptr inbounds i8, ptr %15, i64 0
  %17 = load i8, ptr %16, align 1
  %18 = zext i8 %17 to i32
  %19 = shl i32 %18, 16
  %20 = load ptr, ptr %4, align 8
  %21 = getelementptr inbounds i8, ptr %20, i64 1
  %22 = load i8, ptr %21, align 1
  %23 = zext i8 %22 to i32
  %24 = shl i32 %23, 8
  %25 = or i32 %19, %24
  %26 = load ptr, ptr %4, align 8
  %27 = getelementptr inbounds i8, ptr %26, i64 2
  %28 = load i8, ptr %27, align 1
  %29 = zext i8 %28 to i32
  %30 = or i32 %25, %29
  store i32 %30, ptr %8, align 4
  %31 = load i32, ptr %8, align 4
  %32 = lshr i32 %31, 18
  %33 = zext i32 %32 to i64
  %34 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %33
  %35 = load i8, ptr %34, align 1
  %36 = load ptr, ptr %6, align 8
  %37 = getelementptr inbounds nuw i8, ptr %36, i32 1
  store ptr %37, ptr %6, align 8
  store i8 %35, ptr %36, align 1
  %38 = load i32, ptr %8, align 4
  %39 = lshr i32 %38, 12
  %40 = and i32 %39, 63
  %41 = zext i32 %40 to i64
  %42 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %41
  %43 = load i8, ptr %42, align 1
  %44 = load ptr, ptr %6, align 8
  %45 = getelementptr inbounds nuw i8, ptr %44, i32 1
  store ptr %45, ptr %6, align 8
  store i8 %43, ptr %44, align 1
  %46 = load i32, ptr %8, align 4
  %47 = lshr i32 %46, 6
  %48 = and i32 %47, 63
  %49 = zext i32 %48 to i64
  %50 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %49
  %51 = load i8, ptr %50, align 1
  %52 = load ptr, ptr %6, align 8
  %53 = getelementptr inbounds nuw i8, ptr %52, i32 1
  store ptr %53, ptr %6, align 8
  store i8 %51, ptr %52, align 1
  %54 = load i32, ptr %8, align 4
  %55 = and i32 %54, 63
  %56 = zext i32 %55 to i64
  %57 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %56
  %58 = load i8, ptr %57, align 1
  %59 = load ptr, ptr %6, align 8
  %60 = getelementptr inbounds nuw i8, ptr %59, i32 1
  store ptr %60, ptr %6, align 8
  store i8 %58, ptr %59, align 1
  br label %61

61:
  %62 = load i32, ptr %5, align 4
  %63 = sub nsw i32 %62, 3
  store i32 %63, ptr %5, align 4
  %64 = load ptr, ptr %4, align 8
  %65 = getelementptr inbounds i8, ptr %64, i64 3
  store ptr %65, ptr %4, align 8
  br label %11

66:
  %67 = load i32, ptr %5, align 4
  %68 = icmp ne i32 %67, 0
  br i1 %68, label %69, label %120

69:
  %70 = load ptr, ptr %4, align 8
  %71 = getelementptr inbounds i8, ptr %70, i64 0
  %72 = load i8, ptr %71, align 1
  %73 = zext i8 %72 to i32
  %74 = shl i32 %73, 16
  %75 = load i32, ptr %5, align 4
  %76 = icmp eq i32 %75, 2
  br i1 %76, label %77, label %83

77:
  %78 = load ptr, ptr %4, align 8
  %79 = getelementptr inbounds i8, ptr %78, i64 1
  %80 = load i8, ptr %79, align 1
  %81 = zext i8 %80 to i32
  %82 = shl i32 %81, 8
  br label %84

83:
  br label %84

84:
  %85 = phi i32 [ %82, %77 ], [ 0, %83 ]
  %86 = or i32 %74, %85
  store i32 %86, ptr %9, align 4
  %87 = load i32, ptr %9, align 4
  %88 = lshr i32 %87, 18
  %89 = zext i32 %88 to i64
  %90 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %89
  %91 = load i8, ptr %90, align 1
  %92 = load ptr, ptr %6, align 8
  %93 = getelementptr inbounds nuw i8, ptr %92, i32 1
  store ptr %93, ptr %6, align 8
  store i8 %91, ptr %92, align 1
  %94 = load i32, ptr %9, align 4
  %95 = lshr i32 %94, 12
  %96 = and i32 %95, 63
  %97 = zext i32 %96 to i64
  %98 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %97
  %99 = load i8, ptr %98, align 1
  %100 = load ptr, ptr %6, align 8
  %101 = getelementptr inbounds nuw i8, ptr %100, i32 1
  store ptr %101, ptr %6, align 8
  store i8 %99, ptr %100, align 1
  %102 = load i32, ptr %5, align 4
  %103 = icmp eq i32 %102, 2
  br i1 %103, label %104, label %112

104:
  %105 = load i32, ptr %9, align 4
  %106 = lshr i32 %105, 6
  %107 = and i32 %106, 63
  %108 = zext i32 %107 to i64
  %109 = getelementptr inbounds nuw [64 x i8], ptr @digits, i64 0, i64 %108
  %110 = load i8, ptr %109, align 1
  %111 = sext i8 %110 to i32
  br label %113

112:
  br label %113

113:
  %114 = phi i32 [ %111, %104 ], [ 61, %112 ]
  %115 = trunc i32 %114 to i8
  %116 = load ptr, ptr %6, align 8
  %117 = getelementptr inbounds nuw i8, ptr %116, i32 1
  store ptr %117, ptr %6, align 8
  store i8 %115, ptr %116, align 1
  %118 = load ptr, ptr %6, align 8
  %119 = getelementptr inbounds nuw i8, ptr %118, i32 1
  store ptr %119, ptr %6, align 8
  store i8 61, ptr %118, align 1
  br label %120

120:
  %121 = load ptr, ptr %6, align 8
  %122 = load ptr, ptr %7, align 8
  %123 = ptrtoint ptr %121 to i64
  %124 = ptrtoint ptr %122 to i64
  %125 = sub i64 %123, %124
  %126 = trunc i64 %125 to i32
  ret i32 %126
}
