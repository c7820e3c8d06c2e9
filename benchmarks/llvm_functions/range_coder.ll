target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.coder = type { i32, i32, ptr }

define i32 @encode_bit(ptr noundef %0, ptr noundef %1, i32 noundef %2) minsize optsize {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  %7 = alloca i32, align 4
  %8 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  store i32 %2, ptr %6, align 4
  %9 = load ptr, ptr %4, align 8
  %10 = getelementptr inbounds nuw %struct.coder, ptr %9, i32 0, i32 1
  %11 = load i32, ptr %10, align 4
  %12 = lshr i32 %11, 11
  %13 = load ptr, ptr %5, align 8
  %14 = load i16, ptr %13, align 2
  %15 = zext i16 %14 to i32
  %16 = mul i32 %12, %15
  store i32 %16, ptr %7, align 4
  %17 = load i32, ptr %6, align 4
  %18 = icmp ne i32 %17, 0
  br i1 %18, label %19, label %39

19:
  %20 = load i32, ptr %7, align 4
  %21 = load ptr, ptr %4, align 8
  %22 = getelementptr inbounds nuw %struct.coder, ptr %21, i32 0, i32 0
  %23 = load i32, ptr %22, align 8
  %24 = add i32 %23, %20
  store i32 %24, ptr %22, align 8
  %25 = load i32, ptr %7, align 4
  %26 = load ptr, ptr %4, align 8
  %27 = getelementptr inbounds nuw %struct.coder, ptr %26, i32 0, i32 1
  %28 = load i32, ptr %27, align 4
  %29 = sub i32 %28, %25
  store i32 %29, ptr %27, align 4
  %30 = load ptr, ptr %5, align 8
  %31 = load i16, ptr %30, align 2
  %32 = zext i16 %31 to i32
  %33 = ashr i32 %32, 5
  %34 = load ptr, ptr %5, align 8
  %35 = load i16, ptr %34, align 2
  %36 = zext i16 %35 to i32
  %37 = sub nsw i32 %36, %33
  %38 = trunc i32 %37 to i16
  store i16 %38, ptr %34, align 2
  br label %53

39:
  %40 = load i32, ptr %7, align 4
  %41 = load ptr, ptr %4, align 8
  %42 = getelementptr inbounds nuw %struct.coder, ptr %41, i32 0, i32 1
  store i32 %40, ptr %42, align 4
  %43 = load ptr, ptr %5, align 8
  %44 = load i16, ptr %43, align 2
  %45 = zext i16 %44 to i32
  %46 = sub nsw i32 2048, %45
  %47 = ashr i32 %46, 5
  %48 = load ptr, ptr %5, align 8
  %49 = load i16, ptr %48, align 2
  %50 = zext i16 %49 to i32
  %51 = add nsw i32 %50, %47
  %52 = trunc i32 %51 to i16
  store i16 %52, ptr %48, align 2
  br label %53

53:
  store i32 0, ptr %8, align 4
  br label %54

54:
  %55 = load ptr, ptr %4, align 8
  %56 = getelementptr inbounds nuw %struct.coder, ptr %55, i32 0, i32 1
  %57 = load i32, ptr %56, align 4
  %58 = icmp ult i32 %57, 16777216
  br i1 %58, label %59, label %79

59:
  %60 = load ptr, ptr %4, align 8
  %61 = getelementptr inbounds nuw %struct.coder, ptr %60, i32 0, i32 0
  %62 = load i32, ptr %61, align 8
  %63 = lshr i32 %62, 24
  %64 = trunc i32 %63 to i8
  %65 = load ptr, ptr %4, align 8
  %66 = getelementptr inbounds nuw %struct.coder, ptr %65, i32 0, i32 2
  %67 = load ptr, ptr %66, align 8
  %68 = getelementptr inbounds nuw i8, ptr %67, i32 1
  store ptr %68, ptr %66, align 8
  store i8 %64, ptr %67, align 1
  %69 = load ptr, ptr %4, align 8
  %70 = getelementptr inbounds nuw %struct.coder, ptr %69, i32 0, i32 0
  %71 = load i32, ptr %70, align 8
  %72 = shl i32 %71, 8
  store i32 %72, ptr %70, align 8
  %73 = load ptr, ptr %4, align 8
  %74 = getelementptr inbounds nuw %struct.coder, ptr %73, i32 0, i32 1
  %75 = load i32, ptr %74, align 4
  %76 = shl i32 %75, 8
  store i32 %76, ptr %74, align 4
  %77 = load i32, ptr %8, align 4
  %78 = add nsw i32 %77, 1
  store i32 %78, ptr %8, align 4
  br label %54

79:
  %80 = load i32, ptr %8, align 4
  ret i32 %80
}
