; inflate.c of zlib 1.2.13 (Debian's source package zlib 1:1.2.13.dfsg-1), as LLVM IR:
;   clang-22 -O0 -Xclang -disable-O0-optnone -g0 -fno-stack-protector -fno-ident -S -emit-llvm inflate.c
;
; Copyright (C) 1995-2022 Jean-loup Gailly and Mark Adler
;
; This software is provided 'as-is', without any express or implied warranty. In no event will the authors
; be held liable for any damages arising from the use of this software.
;
; Permission is granted to anyone to use this software for any purpose, including commercial applications,
; and to alter it and redistribute it freely, subject to the following restrictions:
;
; 1. The origin of this software must not be misrepresented; you must not claim that you wrote the original
;    software. If you use this software in a product, an acknowledgment in the product documentation would
;    be appreciated but is not required.
; 2. Altered source versions must be plainly marked as such, and must not be misrepresented as being the
;    original software.
; 3. This notice may not be removed or altered from any source distribution.
;
source_filename = "inflate.c"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.code = type { i8, i8, i16 }
%struct.z_stream_s = type { ptr, i32, i64, ptr, i32, i64, ptr, ptr, ptr, ptr, ptr, i32, i64, i64 }
%struct.inflate_state = type { ptr, i32, i32, i32, i32, i32, i32, i64, i64, ptr, i32, i32, i32, i32, ptr, i64, i32, i32, i32, i32, ptr, ptr, i32, i32, i32, i32, i32, i32, ptr, [320 x i16], [288 x i16], [1444 x %struct.code], i32, i32, i32 }
%struct.gz_header_s = type { i32, i64, i32, i32, ptr, i32, i32, ptr, i32, ptr, i32, i32, i32 }

@.str = private unnamed_addr constant [7 x i8] c"1.2.13\00", align 1
@inflate.order = internal constant [19 x i16] [i16 16, i16 17, i16 18, i16 0, i16 8, i16 7, i16 9, i16 6, i16 10, i16 5, i16 11, i16 4, i16 12, i16 3, i16 13, i16 2, i16 14, i16 1, i16 15], align 16
@.str.1 = private unnamed_addr constant [23 x i8] c"incorrect header check\00", align 1
@.str.2 = private unnamed_addr constant [27 x i8] c"unknown compression method\00", align 1
@.str.3 = private unnamed_addr constant [20 x i8] c"invalid window size\00", align 1
@.str.4 = private unnamed_addr constant [25 x i8] c"unknown header flags set\00", align 1
@.str.5 = private unnamed_addr constant [20 x i8] c"header crc mismatch\00", align 1
@.str.6 = private unnamed_addr constant [19 x i8] c"invalid block type\00", align 1
@.str.7 = private unnamed_addr constant [29 x i8] c"invalid stored block lengths\00", align 1
@.str.8 = private unnamed_addr constant [36 x i8] c"too many length or distance symbols\00", align 1
@.str.9 = private unnamed_addr constant [25 x i8] c"invalid code lengths set\00", align 1
@.str.10 = private unnamed_addr constant [26 x i8] c"invalid bit length repeat\00", align 1
@.str.11 = private unnamed_addr constant [37 x i8] c"invalid code -- missing end-of-block\00", align 1
@.str.12 = private unnamed_addr constant [28 x i8] c"invalid literal/lengths set\00", align 1
@.str.13 = private unnamed_addr constant [22 x i8] c"invalid distances set\00", align 1
@.str.14 = private unnamed_addr constant [28 x i8] c"invalid literal/length code\00", align 1
@.str.15 = private unnamed_addr constant [22 x i8] c"invalid distance code\00", align 1
@.str.16 = private unnamed_addr constant [30 x i8] c"invalid distance too far back\00", align 1
@.str.17 = private unnamed_addr constant [21 x i8] c"incorrect data check\00", align 1
@.str.18 = private unnamed_addr constant [23 x i8] c"incorrect length check\00", align 1
@fixedtables.lenfix = internal constant [512 x %struct.code] [%struct.code { i8 96, i8 7, i16 0 }, %struct.code { i8 0, i8 8, i16 80 }, %struct.code { i8 0, i8 8, i16 16 }, %struct.code { i8 20, i8 8, i16 115 }, %struct.code { i8 18, i8 7, i16 31 }, %struct.code { i8 0, i8 8, i16 112 }, %struct.code { i8 0, i8 8, i16 48 }, %struct.code { i8 0, i8 9, i16 192 }, %struct.code { i8 16, i8 7, i16 10 }, %struct.code { i8 0, i8 8, i16 96 }, %struct.code { i8 0, i8 8, i16 32 }, %struct.code { i8 0, i8 9, i16 160 }, %struct.code { i8 0, i8 8, i16 0 }, %struct.code { i8 0, i8 8, i16 128 }, %struct.code { i8 0, i8 8, i16 64 }, %struct.code { i8 0, i8 9, i16 224 }, %struct.code { i8 16, i8 7, i16 6 }, %struct.code { i8 0, i8 8, i16 88 }, %struct.code { i8 0, i8 8, i16 24 }, %struct.code { i8 0, i8 9, i16 144 }, %struct.code { i8 19, i8 7, i16 59 }, %struct.code { i8 0, i8 8, i16 120 }, %struct.code { i8 0, i8 8, i16 56 }, %struct.code { i8 0, i8 9, i16 208 }, %struct.code { i8 17, i8 7, i16 17 }, %struct.code { i8 0, i8 8, i16 104 }, %struct.code { i8 0, i8 8, i16 40 }, %struct.code { i8 0, i8 9, i16 176 }, %struct.code { i8 0, i8 8, i16 8 }, %struct.code { i8 0, i8 8, i16 136 }, %struct.code { i8 0, i8 8, i16 72 }, %struct.code { i8 0, i8 9, i16 240 }, %struct.code { i8 16, i8 7, i16 4 }, %struct.code { i8 0, i8 8, i16 84 }, %struct.code { i8 0, i8 8, i16 20 }, %struct.code { i8 21, i8 8, i16 227 }, %struct.code { i8 19, i8 7, i16 43 }, %struct.code { i8 0, i8 8, i16 116 }, %struct.code { i8 0, i8 8, i16 52 }, %struct.code { i8 0, i8 9, i16 200 }, %struct.code { i8 17, i8 7, i16 13 }, %struct.code { i8 0, i8 8, i16 100 }, %struct.code { i8 0, i8 8, i16 36 }, %struct.code { i8 0, i8 9, i16 168 }, %struct.code { i8 0, i8 8, i16 4 }, %struct.code { i8 0, i8 8, i16 132 }, %struct.code { i8 0, i8 8, i16 68 }, %struct.code { i8 0, i8 9, i16 232 }, %struct.code { i8 16, i8 7, i16 8 }, %struct.code { i8 0, i8 8, i16 92 }, %struct.code { i8 0, i8 8, i16 28 }, %struct.code { i8 0, i8 9, i16 152 }, %struct.code { i8 20, i8 7, i16 83 }, %struct.code { i8 0, i8 8, i16 124 }, %struct.code { i8 0, i8 8, i16 60 }, %struct.code { i8 0, i8 9, i16 216 }, %struct.code { i8 18, i8 7, i16 23 }, %struct.code { i8 0, i8 8, i16 108 }, %struct.code { i8 0, i8 8, i16 44 }, %struct.code { i8 0, i8 9, i16 184 }, %struct.code { i8 0, i8 8, i16 12 }, %struct.code { i8 0, i8 8, i16 140 }, %struct.code { i8 0, i8 8, i16 76 }, %struct.code { i8 0, i8 9, i16 248 }, %struct.code { i8 16, i8 7, i16 3 }, %struct.code { i8 0, i8 8, i16 82 }, %struct.code { i8 0, i8 8, i16 18 }, %struct.code { i8 21, i8 8, i16 163 }, %struct.code { i8 19, i8 7, i16 35 }, %struct.code { i8 0, i8 8, i16 114 }, %struct.code { i8 0, i8 8, i16 50 }, %struct.code { i8 0, i8 9, i16 196 }, %struct.code { i8 17, i8 7, i16 11 }, %struct.code { i8 0, i8 8, i16 98 }, %struct.code { i8 0, i8 8, i16 34 }, %struct.code { i8 0, i8 9, i16 164 }, %struct.code { i8 0, i8 8, i16 2 }, %struct.code { i8 0, i8 8, i16 130 }, %struct.code { i8 0, i8 8, i16 66 }, %struct.code { i8 0, i8 9, i16 228 }, %struct.code { i8 16, i8 7, i16 7 }, %struct.code { i8 0, i8 8, i16 90 }, %struct.code { i8 0, i8 8, i16 26 }, %struct.code { i8 0, i8 9, i16 148 }, %struct.code { i8 20, i8 7, i16 67 }, %struct.code { i8 0, i8 8, i16 122 }, %struct.code { i8 0, i8 8, i16 58 }, %struct.code { i8 0, i8 9, i16 212 }, %struct.code { i8 18, i8 7, i16 19 }, %struct.code { i8 0, i8 8, i16 106 }, %struct.code { i8 0, i8 8, i16 42 }, %struct.code { i8 0, i8 9, i16 180 }, %struct.code { i8 0, i8 8, i16 10 }, %struct.code { i8 0, i8 8, i16 138 }, %struct.code { i8 0, i8 8, i16 74 }, %struct.code { i8 0, i8 9, i16 244 }, %struct.code { i8 16, i8 7, i16 5 }, %struct.code { i8 0, i8 8, i16 86 }, %struct.code { i8 0, i8 8, i16 22 }, %struct.code { i8 64, i8 8, i16 0 }, %struct.code { i8 19, i8 7, i16 51 }, %struct.code { i8 0, i8 8, i16 118 }, %struct.code { i8 0, i8 8, i16 54 }, %struct.code { i8 0, i8 9, i16 204 }, %struct.code { i8 17, i8 7, i16 15 }, %struct.code { i8 0, i8 8, i16 102 }, %struct.code { i8 0, i8 8, i16 38 }, %struct.code { i8 0, i8 9, i16 172 }, %struct.code { i8 0, i8 8, i16 6 }, %struct.code { i8 0, i8 8, i16 134 }, %struct.code { i8 0, i8 8, i16 70 }, %struct.code { i8 0, i8 9, i16 236 }, %struct.code { i8 16, i8 7, i16 9 }, %struct.code { i8 0, i8 8, i16 94 }, %struct.code { i8 0, i8 8, i16 30 }, %struct.code { i8 0, i8 9, i16 156 }, %struct.code { i8 20, i8 7, i16 99 }, %struct.code { i8 0, i8 8, i16 126 }, %struct.code { i8 0, i8 8, i16 62 }, %struct.code { i8 0, i8 9, i16 220 }, %struct.code { i8 18, i8 7, i16 27 }, %struct.code { i8 0, i8 8, i16 110 }, %struct.code { i8 0, i8 8, i16 46 }, %struct.code { i8 0, i8 9, i16 188 }, %struct.code { i8 0, i8 8, i16 14 }, %struct.code { i8 0, i8 8, i16 142 }, %struct.code { i8 0, i8 8, i16 78 }, %struct.code { i8 0, i8 9, i16 252 }, %struct.code { i8 96, i8 7, i16 0 }, %struct.code { i8 0, i8 8, i16 81 }, %struct.code { i8 0, i8 8, i16 17 }, %struct.code { i8 21, i8 8, i16 131 }, %struct.code { i8 18, i8 7, i16 31 }, %struct.code { i8 0, i8 8, i16 113 }, %struct.code { i8 0, i8 8, i16 49 }, %struct.code { i8 0, i8 9, i16 194 }, %struct.code { i8 16, i8 7, i16 10 }, %struct.code { i8 0, i8 8, i16 97 }, %struct.code { i8 0, i8 8, i16 33 }, %struct.code { i8 0, i8 9, i16 162 }, %struct.code { i8 0, i8 8, i16 1 }, %struct.code { i8 0, i8 8, i16 129 }, %struct.code { i8 0, i8 8, i16 65 }, %struct.code { i8 0, i8 9, i16 226 }, %struct.code { i8 16, i8 7, i16 6 }, %struct.code { i8 0, i8 8, i16 89 }, %struct.code { i8 0, i8 8, i16 25 }, %struct.code { i8 0, i8 9, i16 146 }, %struct.code { i8 19, i8 7, i16 59 }, %struct.code { i8 0, i8 8, i16 121 }, %struct.code { i8 0, i8 8, i16 57 }, %struct.code { i8 0, i8 9, i16 210 }, %struct.code { i8 17, i8 7, i16 17 }, %struct.code { i8 0, i8 8, i16 105 }, %struct.code { i8 0, i8 8, i16 41 }, %struct.code { i8 0, i8 9, i16 178 }, %struct.code { i8 0, i8 8, i16 9 }, %struct.code { i8 0, i8 8, i16 137 }, %struct.code { i8 0, i8 8, i16 73 }, %struct.code { i8 0, i8 9, i16 242 }, %struct.code { i8 16, i8 7, i16 4 }, %struct.code { i8 0, i8 8, i16 85 }, %struct.code { i8 0, i8 8, i16 21 }, %struct.code { i8 16, i8 8, i16 258 }, %struct.code { i8 19, i8 7, i16 43 }, %struct.code { i8 0, i8 8, i16 117 }, %struct.code { i8 0, i8 8, i16 53 }, %struct.code { i8 0, i8 9, i16 202 }, %struct.code { i8 17, i8 7, i16 13 }, %struct.code { i8 0, i8 8, i16 101 }, %struct.code { i8 0, i8 8, i16 37 }, %struct.code { i8 0, i8 9, i16 170 }, %struct.code { i8 0, i8 8, i16 5 }, %struct.code { i8 0, i8 8, i16 133 }, %struct.code { i8 0, i8 8, i16 69 }, %struct.code { i8 0, i8 9, i16 234 }, %struct.code { i8 16, i8 7, i16 8 }, %struct.code { i8 0, i8 8, i16 93 }, %struct.code { i8 0, i8 8, i16 29 }, %struct.code { i8 0, i8 9, i16 154 }, %struct.code { i8 20, i8 7, i16 83 }, %struct.code { i8 0, i8 8, i16 125 }, %struct.code { i8 0, i8 8, i16 61 }, %struct.code { i8 0, i8 9, i16 218 }, %struct.code { i8 18, i8 7, i16 23 }, %struct.code { i8 0, i8 8, i16 109 }, %struct.code { i8 0, i8 8, i16 45 }, %struct.code { i8 0, i8 9, i16 186 }, %struct.code { i8 0, i8 8, i16 13 }, %struct.code { i8 0, i8 8, i16 141 }, %struct.code { i8 0, i8 8, i16 77 }, %struct.code { i8 0, i8 9, i16 250 }, %struct.code { i8 16, i8 7, i16 3 }, %struct.code { i8 0, i8 8, i16 83 }, %struct.code { i8 0, i8 8, i16 19 }, %struct.code { i8 21, i8 8, i16 195 }, %struct.code { i8 19, i8 7, i16 35 }, %struct.code { i8 0, i8 8, i16 115 }, %struct.code { i8 0, i8 8, i16 51 }, %struct.code { i8 0, i8 9, i16 198 }, %struct.code { i8 17, i8 7, i16 11 }, %struct.code { i8 0, i8 8, i16 99 }, %struct.code { i8 0, i8 8, i16 35 }, %struct.code { i8 0, i8 9, i16 166 }, %struct.code { i8 0, i8 8, i16 3 }, %struct.code { i8 0, i8 8, i16 131 }, %struct.code { i8 0, i8 8, i16 67 }, %struct.code { i8 0, i8 9, i16 230 }, %struct.code { i8 16, i8 7, i16 7 }, %struct.code { i8 0, i8 8, i16 91 }, %struct.code { i8 0, i8 8, i16 27 }, %struct.code { i8 0, i8 9, i16 150 }, %struct.code { i8 20, i8 7, i16 67 }, %struct.code { i8 0, i8 8, i16 123 }, %struct.code { i8 0, i8 8, i16 59 }, %struct.code { i8 0, i8 9, i16 214 }, %struct.code { i8 18, i8 7, i16 19 }, %struct.code { i8 0, i8 8, i16 107 }, %struct.code { i8 0, i8 8, i16 43 }, %struct.code { i8 0, i8 9, i16 182 }, %struct.code { i8 0, i8 8, i16 11 }, %struct.code { i8 0, i8 8, i16 139 }, %struct.code { i8 0, i8 8, i16 75 }, %struct.code { i8 0, i8 9, i16 246 }, %struct.code { i8 16, i8 7, i16 5 }, %struct.code { i8 0, i8 8, i16 87 }, %struct.code { i8 0, i8 8, i16 23 }, %struct.code { i8 64, i8 8, i16 0 }, %struct.code { i8 19, i8 7, i16 51 }, %struct.code { i8 0, i8 8, i16 119 }, %struct.code { i8 0, i8 8, i16 55 }, %struct.code { i8 0, i8 9, i16 206 }, %struct.code { i8 17, i8 7, i16 15 }, %struct.code { i8 0, i8 8, i16 103 }, %struct.code { i8 0, i8 8, i16 39 }, %struct.code { i8 0, i8 9, i16 174 }, %struct.code { i8 0, i8 8, i16 7 }, %struct.code { i8 0, i8 8, i16 135 }, %struct.code { i8 0, i8 8, i16 71 }, %struct.code { i8 0, i8 9, i16 238 }, %struct.code { i8 16, i8 7, i16 9 }, %struct.code { i8 0, i8 8, i16 95 }, %struct.code { i8 0, i8 8, i16 31 }, %struct.code { i8 0, i8 9, i16 158 }, %struct.code { i8 20, i8 7, i16 99 }, %struct.code { i8 0, i8 8, i16 127 }, %struct.code { i8 0, i8 8, i16 63 }, %struct.code { i8 0, i8 9, i16 222 }, %struct.code { i8 18, i8 7, i16 27 }, %struct.code { i8 0, i8 8, i16 111 }, %struct.code { i8 0, i8 8, i16 47 }, %struct.code { i8 0, i8 9, i16 190 }, %struct.code { i8 0, i8 8, i16 15 }, %struct.code { i8 0, i8 8, i16 143 }, %struct.code { i8 0, i8 8, i16 79 }, %struct.code { i8 0, i8 9, i16 254 }, %struct.code { i8 96, i8 7, i16 0 }, %struct.code { i8 0, i8 8, i16 80 }, %struct.code { i8 0, i8 8, i16 16 }, %struct.code { i8 20, i8 8, i16 115 }, %struct.code { i8 18, i8 7, i16 31 }, %struct.code { i8 0, i8 8, i16 112 }, %struct.code { i8 0, i8 8, i16 48 }, %struct.code { i8 0, i8 9, i16 193 }, %struct.code { i8 16, i8 7, i16 10 }, %struct.code { i8 0, i8 8, i16 96 }, %struct.code { i8 0, i8 8, i16 32 }, %struct.code { i8 0, i8 9, i16 161 }, %struct.code { i8 0, i8 8, i16 0 }, %struct.code { i8 0, i8 8, i16 128 }, %struct.code { i8 0, i8 8, i16 64 }, %struct.code { i8 0, i8 9, i16 225 }, %struct.code { i8 16, i8 7, i16 6 }, %struct.code { i8 0, i8 8, i16 88 }, %struct.code { i8 0, i8 8, i16 24 }, %struct.code { i8 0, i8 9, i16 145 }, %struct.code { i8 19, i8 7, i16 59 }, %struct.code { i8 0, i8 8, i16 120 }, %struct.code { i8 0, i8 8, i16 56 }, %struct.code { i8 0, i8 9, i16 209 }, %struct.code { i8 17, i8 7, i16 17 }, %struct.code { i8 0, i8 8, i16 104 }, %struct.code { i8 0, i8 8, i16 40 }, %struct.code { i8 0, i8 9, i16 177 }, %struct.code { i8 0, i8 8, i16 8 }, %struct.code { i8 0, i8 8, i16 136 }, %struct.code { i8 0, i8 8, i16 72 }, %struct.code { i8 0, i8 9, i16 241 }, %struct.code { i8 16, i8 7, i16 4 }, %struct.code { i8 0, i8 8, i16 84 }, %struct.code { i8 0, i8 8, i16 20 }, %struct.code { i8 21, i8 8, i16 227 }, %struct.code { i8 19, i8 7, i16 43 }, %struct.code { i8 0, i8 8, i16 116 }, %struct.code { i8 0, i8 8, i16 52 }, %struct.code { i8 0, i8 9, i16 201 }, %struct.code { i8 17, i8 7, i16 13 }, %struct.code { i8 0, i8 8, i16 100 }, %struct.code { i8 0, i8 8, i16 36 }, %struct.code { i8 0, i8 9, i16 169 }, %struct.code { i8 0, i8 8, i16 4 }, %struct.code { i8 0, i8 8, i16 132 }, %struct.code { i8 0, i8 8, i16 68 }, %struct.code { i8 0, i8 9, i16 233 }, %struct.code { i8 16, i8 7, i16 8 }, %struct.code { i8 0, i8 8, i16 92 }, %struct.code { i8 0, i8 8, i16 28 }, %struct.code { i8 0, i8 9, i16 153 }, %struct.code { i8 20, i8 7, i16 83 }, %struct.code { i8 0, i8 8, i16 124 }, %struct.code { i8 0, i8 8, i16 60 }, %struct.code { i8 0, i8 9, i16 217 }, %struct.code { i8 18, i8 7, i16 23 }, %struct.code { i8 0, i8 8, i16 108 }, %struct.code { i8 0, i8 8, i16 44 }, %struct.code { i8 0, i8 9, i16 185 }, %struct.code { i8 0, i8 8, i16 12 }, %struct.code { i8 0, i8 8, i16 140 }, %struct.code { i8 0, i8 8, i16 76 }, %struct.code { i8 0, i8 9, i16 249 }, %struct.code { i8 16, i8 7, i16 3 }, %struct.code { i8 0, i8 8, i16 82 }, %struct.code { i8 0, i8 8, i16 18 }, %struct.code { i8 21, i8 8, i16 163 }, %struct.code { i8 19, i8 7, i16 35 }, %struct.code { i8 0, i8 8, i16 114 }, %struct.code { i8 0, i8 8, i16 50 }, %struct.code { i8 0, i8 9, i16 197 }, %struct.code { i8 17, i8 7, i16 11 }, %struct.code { i8 0, i8 8, i16 98 }, %struct.code { i8 0, i8 8, i16 34 }, %struct.code { i8 0, i8 9, i16 165 }, %struct.code { i8 0, i8 8, i16 2 }, %struct.code { i8 0, i8 8, i16 130 }, %struct.code { i8 0, i8 8, i16 66 }, %struct.code { i8 0, i8 9, i16 229 }, %struct.code { i8 16, i8 7, i16 7 }, %struct.code { i8 0, i8 8, i16 90 }, %struct.code { i8 0, i8 8, i16 26 }, %struct.code { i8 0, i8 9, i16 149 }, %struct.code { i8 20, i8 7, i16 67 }, %struct.code { i8 0, i8 8, i16 122 }, %struct.code { i8 0, i8 8, i16 58 }, %struct.code { i8 0, i8 9, i16 213 }, %struct.code { i8 18, i8 7, i16 19 }, %struct.code { i8 0, i8 8, i16 106 }, %struct.code { i8 0, i8 8, i16 42 }, %struct.code { i8 0, i8 9, i16 181 }, %struct.code { i8 0, i8 8, i16 10 }, %struct.code { i8 0, i8 8, i16 138 }, %struct.code { i8 0, i8 8, i16 74 }, %struct.code { i8 0, i8 9, i16 245 }, %struct.code { i8 16, i8 7, i16 5 }, %struct.code { i8 0, i8 8, i16 86 }, %struct.code { i8 0, i8 8, i16 22 }, %struct.code { i8 64, i8 8, i16 0 }, %struct.code { i8 19, i8 7, i16 51 }, %struct.code { i8 0, i8 8, i16 118 }, %struct.code { i8 0, i8 8, i16 54 }, %struct.code { i8 0, i8 9, i16 205 }, %struct.code { i8 17, i8 7, i16 15 }, %struct.code { i8 0, i8 8, i16 102 }, %struct.code { i8 0, i8 8, i16 38 }, %struct.code { i8 0, i8 9, i16 173 }, %struct.code { i8 0, i8 8, i16 6 }, %struct.code { i8 0, i8 8, i16 134 }, %struct.code { i8 0, i8 8, i16 70 }, %struct.code { i8 0, i8 9, i16 237 }, %struct.code { i8 16, i8 7, i16 9 }, %struct.code { i8 0, i8 8, i16 94 }, %struct.code { i8 0, i8 8, i16 30 }, %struct.code { i8 0, i8 9, i16 157 }, %struct.code { i8 20, i8 7, i16 99 }, %struct.code { i8 0, i8 8, i16 126 }, %struct.code { i8 0, i8 8, i16 62 }, %struct.code { i8 0, i8 9, i16 221 }, %struct.code { i8 18, i8 7, i16 27 }, %struct.code { i8 0, i8 8, i16 110 }, %struct.code { i8 0, i8 8, i16 46 }, %struct.code { i8 0, i8 9, i16 189 }, %struct.code { i8 0, i8 8, i16 14 }, %struct.code { i8 0, i8 8, i16 142 }, %struct.code { i8 0, i8 8, i16 78 }, %struct.code { i8 0, i8 9, i16 253 }, %struct.code { i8 96, i8 7, i16 0 }, %struct.code { i8 0, i8 8, i16 81 }, %struct.code { i8 0, i8 8, i16 17 }, %struct.code { i8 21, i8 8, i16 131 }, %struct.code { i8 18, i8 7, i16 31 }, %struct.code { i8 0, i8 8, i16 113 }, %struct.code { i8 0, i8 8, i16 49 }, %struct.code { i8 0, i8 9, i16 195 }, %struct.code { i8 16, i8 7, i16 10 }, %struct.code { i8 0, i8 8, i16 97 }, %struct.code { i8 0, i8 8, i16 33 }, %struct.code { i8 0, i8 9, i16 163 }, %struct.code { i8 0, i8 8, i16 1 }, %struct.code { i8 0, i8 8, i16 129 }, %struct.code { i8 0, i8 8, i16 65 }, %struct.code { i8 0, i8 9, i16 227 }, %struct.code { i8 16, i8 7, i16 6 }, %struct.code { i8 0, i8 8, i16 89 }, %struct.code { i8 0, i8 8, i16 25 }, %struct.code { i8 0, i8 9, i16 147 }, %struct.code { i8 19, i8 7, i16 59 }, %struct.code { i8 0, i8 8, i16 121 }, %struct.code { i8 0, i8 8, i16 57 }, %struct.code { i8 0, i8 9, i16 211 }, %struct.code { i8 17, i8 7, i16 17 }, %struct.code { i8 0, i8 8, i16 105 }, %struct.code { i8 0, i8 8, i16 41 }, %struct.code { i8 0, i8 9, i16 179 }, %struct.code { i8 0, i8 8, i16 9 }, %struct.code { i8 0, i8 8, i16 137 }, %struct.code { i8 0, i8 8, i16 73 }, %struct.code { i8 0, i8 9, i16 243 }, %struct.code { i8 16, i8 7, i16 4 }, %struct.code { i8 0, i8 8, i16 85 }, %struct.code { i8 0, i8 8, i16 21 }, %struct.code { i8 16, i8 8, i16 258 }, %struct.code { i8 19, i8 7, i16 43 }, %struct.code { i8 0, i8 8, i16 117 }, %struct.code { i8 0, i8 8, i16 53 }, %struct.code { i8 0, i8 9, i16 203 }, %struct.code { i8 17, i8 7, i16 13 }, %struct.code { i8 0, i8 8, i16 101 }, %struct.code { i8 0, i8 8, i16 37 }, %struct.code { i8 0, i8 9, i16 171 }, %struct.code { i8 0, i8 8, i16 5 }, %struct.code { i8 0, i8 8, i16 133 }, %struct.code { i8 0, i8 8, i16 69 }, %struct.code { i8 0, i8 9, i16 235 }, %struct.code { i8 16, i8 7, i16 8 }, %struct.code { i8 0, i8 8, i16 93 }, %struct.code { i8 0, i8 8, i16 29 }, %struct.code { i8 0, i8 9, i16 155 }, %struct.code { i8 20, i8 7, i16 83 }, %struct.code { i8 0, i8 8, i16 125 }, %struct.code { i8 0, i8 8, i16 61 }, %struct.code { i8 0, i8 9, i16 219 }, %struct.code { i8 18, i8 7, i16 23 }, %struct.code { i8 0, i8 8, i16 109 }, %struct.code { i8 0, i8 8, i16 45 }, %struct.code { i8 0, i8 9, i16 187 }, %struct.code { i8 0, i8 8, i16 13 }, %struct.code { i8 0, i8 8, i16 141 }, %struct.code { i8 0, i8 8, i16 77 }, %struct.code { i8 0, i8 9, i16 251 }, %struct.code { i8 16, i8 7, i16 3 }, %struct.code { i8 0, i8 8, i16 83 }, %struct.code { i8 0, i8 8, i16 19 }, %struct.code { i8 21, i8 8, i16 195 }, %struct.code { i8 19, i8 7, i16 35 }, %struct.code { i8 0, i8 8, i16 115 }, %struct.code { i8 0, i8 8, i16 51 }, %struct.code { i8 0, i8 9, i16 199 }, %struct.code { i8 17, i8 7, i16 11 }, %struct.code { i8 0, i8 8, i16 99 }, %struct.code { i8 0, i8 8, i16 35 }, %struct.code { i8 0, i8 9, i16 167 }, %struct.code { i8 0, i8 8, i16 3 }, %struct.code { i8 0, i8 8, i16 131 }, %struct.code { i8 0, i8 8, i16 67 }, %struct.code { i8 0, i8 9, i16 231 }, %struct.code { i8 16, i8 7, i16 7 }, %struct.code { i8 0, i8 8, i16 91 }, %struct.code { i8 0, i8 8, i16 27 }, %struct.code { i8 0, i8 9, i16 151 }, %struct.code { i8 20, i8 7, i16 67 }, %struct.code { i8 0, i8 8, i16 123 }, %struct.code { i8 0, i8 8, i16 59 }, %struct.code { i8 0, i8 9, i16 215 }, %struct.code { i8 18, i8 7, i16 19 }, %struct.code { i8 0, i8 8, i16 107 }, %struct.code { i8 0, i8 8, i16 43 }, %struct.code { i8 0, i8 9, i16 183 }, %struct.code { i8 0, i8 8, i16 11 }, %struct.code { i8 0, i8 8, i16 139 }, %struct.code { i8 0, i8 8, i16 75 }, %struct.code { i8 0, i8 9, i16 247 }, %struct.code { i8 16, i8 7, i16 5 }, %struct.code { i8 0, i8 8, i16 87 }, %struct.code { i8 0, i8 8, i16 23 }, %struct.code { i8 64, i8 8, i16 0 }, %struct.code { i8 19, i8 7, i16 51 }, %struct.code { i8 0, i8 8, i16 119 }, %struct.code { i8 0, i8 8, i16 55 }, %struct.code { i8 0, i8 9, i16 207 }, %struct.code { i8 17, i8 7, i16 15 }, %struct.code { i8 0, i8 8, i16 103 }, %struct.code { i8 0, i8 8, i16 39 }, %struct.code { i8 0, i8 9, i16 175 }, %struct.code { i8 0, i8 8, i16 7 }, %struct.code { i8 0, i8 8, i16 135 }, %struct.code { i8 0, i8 8, i16 71 }, %struct.code { i8 0, i8 9, i16 239 }, %struct.code { i8 16, i8 7, i16 9 }, %struct.code { i8 0, i8 8, i16 95 }, %struct.code { i8 0, i8 8, i16 31 }, %struct.code { i8 0, i8 9, i16 159 }, %struct.code { i8 20, i8 7, i16 99 }, %struct.code { i8 0, i8 8, i16 127 }, %struct.code { i8 0, i8 8, i16 63 }, %struct.code { i8 0, i8 9, i16 223 }, %struct.code { i8 18, i8 7, i16 27 }, %struct.code { i8 0, i8 8, i16 111 }, %struct.code { i8 0, i8 8, i16 47 }, %struct.code { i8 0, i8 9, i16 191 }, %struct.code { i8 0, i8 8, i16 15 }, %struct.code { i8 0, i8 8, i16 143 }, %struct.code { i8 0, i8 8, i16 79 }, %struct.code { i8 0, i8 9, i16 255 }], align 16
@fixedtables.distfix = internal constant [32 x %struct.code] [%struct.code { i8 16, i8 5, i16 1 }, %struct.code { i8 23, i8 5, i16 257 }, %struct.code { i8 19, i8 5, i16 17 }, %struct.code { i8 27, i8 5, i16 4097 }, %struct.code { i8 17, i8 5, i16 5 }, %struct.code { i8 25, i8 5, i16 1025 }, %struct.code { i8 21, i8 5, i16 65 }, %struct.code { i8 29, i8 5, i16 16385 }, %struct.code { i8 16, i8 5, i16 3 }, %struct.code { i8 24, i8 5, i16 513 }, %struct.code { i8 20, i8 5, i16 33 }, %struct.code { i8 28, i8 5, i16 8193 }, %struct.code { i8 18, i8 5, i16 9 }, %struct.code { i8 26, i8 5, i16 2049 }, %struct.code { i8 22, i8 5, i16 129 }, %struct.code { i8 64, i8 5, i16 0 }, %struct.code { i8 16, i8 5, i16 2 }, %struct.code { i8 23, i8 5, i16 385 }, %struct.code { i8 19, i8 5, i16 25 }, %struct.code { i8 27, i8 5, i16 6145 }, %struct.code { i8 17, i8 5, i16 7 }, %struct.code { i8 25, i8 5, i16 1537 }, %struct.code { i8 21, i8 5, i16 97 }, %struct.code { i8 29, i8 5, i16 24577 }, %struct.code { i8 16, i8 5, i16 4 }, %struct.code { i8 24, i8 5, i16 769 }, %struct.code { i8 20, i8 5, i16 49 }, %struct.code { i8 28, i8 5, i16 12289 }, %struct.code { i8 18, i8 5, i16 13 }, %struct.code { i8 26, i8 5, i16 3073 }, %struct.code { i8 22, i8 5, i16 193 }, %struct.code { i8 64, i8 5, i16 0 }], align 16

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateResetKeep(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i32 -2, ptr %2, align 4
  br label %63

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 8
  store i64 0, ptr %14, align 8
  %15 = load ptr, ptr %3, align 8
  %16 = getelementptr inbounds nuw %struct.z_stream_s, ptr %15, i32 0, i32 5
  store i64 0, ptr %16, align 8
  %17 = load ptr, ptr %3, align 8
  %18 = getelementptr inbounds nuw %struct.z_stream_s, ptr %17, i32 0, i32 2
  store i64 0, ptr %18, align 8
  %19 = load ptr, ptr %3, align 8
  %20 = getelementptr inbounds nuw %struct.z_stream_s, ptr %19, i32 0, i32 6
  store ptr null, ptr %20, align 8
  %21 = load ptr, ptr %4, align 8
  %22 = getelementptr inbounds nuw %struct.inflate_state, ptr %21, i32 0, i32 3
  %23 = load i32, ptr %22, align 8
  %24 = icmp ne i32 %23, 0
  br i1 %24, label %25, label %33

25:                                               ; preds = %9
  %26 = load ptr, ptr %4, align 8
  %27 = getelementptr inbounds nuw %struct.inflate_state, ptr %26, i32 0, i32 3
  %28 = load i32, ptr %27, align 8
  %29 = and i32 %28, 1
  %30 = sext i32 %29 to i64
  %31 = load ptr, ptr %3, align 8
  %32 = getelementptr inbounds nuw %struct.z_stream_s, ptr %31, i32 0, i32 12
  store i64 %30, ptr %32, align 8
  br label %33

33:                                               ; preds = %25, %9
  %34 = load ptr, ptr %4, align 8
  %35 = getelementptr inbounds nuw %struct.inflate_state, ptr %34, i32 0, i32 1
  store i32 16180, ptr %35, align 8
  %36 = load ptr, ptr %4, align 8
  %37 = getelementptr inbounds nuw %struct.inflate_state, ptr %36, i32 0, i32 2
  store i32 0, ptr %37, align 4
  %38 = load ptr, ptr %4, align 8
  %39 = getelementptr inbounds nuw %struct.inflate_state, ptr %38, i32 0, i32 4
  store i32 0, ptr %39, align 4
  %40 = load ptr, ptr %4, align 8
  %41 = getelementptr inbounds nuw %struct.inflate_state, ptr %40, i32 0, i32 5
  store i32 -1, ptr %41, align 8
  %42 = load ptr, ptr %4, align 8
  %43 = getelementptr inbounds nuw %struct.inflate_state, ptr %42, i32 0, i32 6
  store i32 32768, ptr %43, align 4
  %44 = load ptr, ptr %4, align 8
  %45 = getelementptr inbounds nuw %struct.inflate_state, ptr %44, i32 0, i32 9
  store ptr null, ptr %45, align 8
  %46 = load ptr, ptr %4, align 8
  %47 = getelementptr inbounds nuw %struct.inflate_state, ptr %46, i32 0, i32 15
  store i64 0, ptr %47, align 8
  %48 = load ptr, ptr %4, align 8
  %49 = getelementptr inbounds nuw %struct.inflate_state, ptr %48, i32 0, i32 16
  store i32 0, ptr %49, align 8
  %50 = load ptr, ptr %4, align 8
  %51 = getelementptr inbounds nuw %struct.inflate_state, ptr %50, i32 0, i32 31
  %52 = getelementptr inbounds [1444 x %struct.code], ptr %51, i64 0, i64 0
  %53 = load ptr, ptr %4, align 8
  %54 = getelementptr inbounds nuw %struct.inflate_state, ptr %53, i32 0, i32 28
  store ptr %52, ptr %54, align 8
  %55 = load ptr, ptr %4, align 8
  %56 = getelementptr inbounds nuw %struct.inflate_state, ptr %55, i32 0, i32 21
  store ptr %52, ptr %56, align 8
  %57 = load ptr, ptr %4, align 8
  %58 = getelementptr inbounds nuw %struct.inflate_state, ptr %57, i32 0, i32 20
  store ptr %52, ptr %58, align 8
  %59 = load ptr, ptr %4, align 8
  %60 = getelementptr inbounds nuw %struct.inflate_state, ptr %59, i32 0, i32 32
  store i32 1, ptr %60, align 8
  %61 = load ptr, ptr %4, align 8
  %62 = getelementptr inbounds nuw %struct.inflate_state, ptr %61, i32 0, i32 33
  store i32 -1, ptr %62, align 4
  store i32 0, ptr %2, align 4
  br label %63

63:                                               ; preds = %33, %8
  %64 = load i32, ptr %2, align 4
  ret i32 %64
}

; Function Attrs: noinline nounwind uwtable
define internal i32 @inflateStateCheck(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = icmp eq ptr %5, null
  br i1 %6, label %17, label %7

7:                                                ; preds = %1
  %8 = load ptr, ptr %3, align 8
  %9 = getelementptr inbounds nuw %struct.z_stream_s, ptr %8, i32 0, i32 8
  %10 = load ptr, ptr %9, align 8
  %11 = icmp eq ptr %10, null
  br i1 %11, label %17, label %12

12:                                               ; preds = %7
  %13 = load ptr, ptr %3, align 8
  %14 = getelementptr inbounds nuw %struct.z_stream_s, ptr %13, i32 0, i32 9
  %15 = load ptr, ptr %14, align 8
  %16 = icmp eq ptr %15, null
  br i1 %16, label %17, label %18

17:                                               ; preds = %12, %7, %1
  store i32 1, ptr %2, align 4
  br label %42

18:                                               ; preds = %12
  %19 = load ptr, ptr %3, align 8
  %20 = getelementptr inbounds nuw %struct.z_stream_s, ptr %19, i32 0, i32 7
  %21 = load ptr, ptr %20, align 8
  store ptr %21, ptr %4, align 8
  %22 = load ptr, ptr %4, align 8
  %23 = icmp eq ptr %22, null
  br i1 %23, label %40, label %24

24:                                               ; preds = %18
  %25 = load ptr, ptr %4, align 8
  %26 = getelementptr inbounds nuw %struct.inflate_state, ptr %25, i32 0, i32 0
  %27 = load ptr, ptr %26, align 8
  %28 = load ptr, ptr %3, align 8
  %29 = icmp ne ptr %27, %28
  br i1 %29, label %40, label %30

30:                                               ; preds = %24
  %31 = load ptr, ptr %4, align 8
  %32 = getelementptr inbounds nuw %struct.inflate_state, ptr %31, i32 0, i32 1
  %33 = load i32, ptr %32, align 8
  %34 = icmp ult i32 %33, 16180
  br i1 %34, label %40, label %35

35:                                               ; preds = %30
  %36 = load ptr, ptr %4, align 8
  %37 = getelementptr inbounds nuw %struct.inflate_state, ptr %36, i32 0, i32 1
  %38 = load i32, ptr %37, align 8
  %39 = icmp ugt i32 %38, 16211
  br i1 %39, label %40, label %41

40:                                               ; preds = %35, %30, %24, %18
  store i32 1, ptr %2, align 4
  br label %42

41:                                               ; preds = %35
  store i32 0, ptr %2, align 4
  br label %42

42:                                               ; preds = %41, %40, %17
  %43 = load i32, ptr %2, align 4
  ret i32 %43
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateReset(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i32 -2, ptr %2, align 4
  br label %21

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 11
  store i32 0, ptr %14, align 4
  %15 = load ptr, ptr %4, align 8
  %16 = getelementptr inbounds nuw %struct.inflate_state, ptr %15, i32 0, i32 12
  store i32 0, ptr %16, align 8
  %17 = load ptr, ptr %4, align 8
  %18 = getelementptr inbounds nuw %struct.inflate_state, ptr %17, i32 0, i32 13
  store i32 0, ptr %18, align 4
  %19 = load ptr, ptr %3, align 8
  %20 = call i32 @inflateResetKeep(ptr noundef %19)
  store i32 %20, ptr %2, align 4
  br label %21

21:                                               ; preds = %9, %8
  %22 = load i32, ptr %2, align 4
  ret i32 %22
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateReset2(ptr noundef %0, i32 noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca i32, align 4
  %7 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  %8 = load ptr, ptr %4, align 8
  %9 = call i32 @inflateStateCheck(ptr noundef %8)
  %10 = icmp ne i32 %9, 0
  br i1 %10, label %11, label %12

11:                                               ; preds = %2
  store i32 -2, ptr %3, align 4
  br label %77

12:                                               ; preds = %2
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.z_stream_s, ptr %13, i32 0, i32 7
  %15 = load ptr, ptr %14, align 8
  store ptr %15, ptr %7, align 8
  %16 = load i32, ptr %5, align 4
  %17 = icmp slt i32 %16, 0
  br i1 %17, label %18, label %25

18:                                               ; preds = %12
  %19 = load i32, ptr %5, align 4
  %20 = icmp slt i32 %19, -15
  br i1 %20, label %21, label %22

21:                                               ; preds = %18
  store i32 -2, ptr %3, align 4
  br label %77

22:                                               ; preds = %18
  store i32 0, ptr %6, align 4
  %23 = load i32, ptr %5, align 4
  %24 = sub nsw i32 0, %23
  store i32 %24, ptr %5, align 4
  br label %35

25:                                               ; preds = %12
  %26 = load i32, ptr %5, align 4
  %27 = ashr i32 %26, 4
  %28 = add nsw i32 %27, 5
  store i32 %28, ptr %6, align 4
  %29 = load i32, ptr %5, align 4
  %30 = icmp slt i32 %29, 48
  br i1 %30, label %31, label %34

31:                                               ; preds = %25
  %32 = load i32, ptr %5, align 4
  %33 = and i32 %32, 15
  store i32 %33, ptr %5, align 4
  br label %34

34:                                               ; preds = %31, %25
  br label %35

35:                                               ; preds = %34, %22
  %36 = load i32, ptr %5, align 4
  %37 = icmp ne i32 %36, 0
  br i1 %37, label %38, label %45

38:                                               ; preds = %35
  %39 = load i32, ptr %5, align 4
  %40 = icmp slt i32 %39, 8
  br i1 %40, label %44, label %41

41:                                               ; preds = %38
  %42 = load i32, ptr %5, align 4
  %43 = icmp sgt i32 %42, 15
  br i1 %43, label %44, label %45

44:                                               ; preds = %41, %38
  store i32 -2, ptr %3, align 4
  br label %77

45:                                               ; preds = %41, %35
  %46 = load ptr, ptr %7, align 8
  %47 = getelementptr inbounds nuw %struct.inflate_state, ptr %46, i32 0, i32 14
  %48 = load ptr, ptr %47, align 8
  %49 = icmp ne ptr %48, null
  br i1 %49, label %50, label %68

50:                                               ; preds = %45
  %51 = load ptr, ptr %7, align 8
  %52 = getelementptr inbounds nuw %struct.inflate_state, ptr %51, i32 0, i32 10
  %53 = load i32, ptr %52, align 8
  %54 = load i32, ptr %5, align 4
  %55 = icmp ne i32 %53, %54
  br i1 %55, label %56, label %68

56:                                               ; preds = %50
  %57 = load ptr, ptr %4, align 8
  %58 = getelementptr inbounds nuw %struct.z_stream_s, ptr %57, i32 0, i32 9
  %59 = load ptr, ptr %58, align 8
  %60 = load ptr, ptr %4, align 8
  %61 = getelementptr inbounds nuw %struct.z_stream_s, ptr %60, i32 0, i32 10
  %62 = load ptr, ptr %61, align 8
  %63 = load ptr, ptr %7, align 8
  %64 = getelementptr inbounds nuw %struct.inflate_state, ptr %63, i32 0, i32 14
  %65 = load ptr, ptr %64, align 8
  call void %59(ptr noundef %62, ptr noundef %65)
  %66 = load ptr, ptr %7, align 8
  %67 = getelementptr inbounds nuw %struct.inflate_state, ptr %66, i32 0, i32 14
  store ptr null, ptr %67, align 8
  br label %68

68:                                               ; preds = %56, %50, %45
  %69 = load i32, ptr %6, align 4
  %70 = load ptr, ptr %7, align 8
  %71 = getelementptr inbounds nuw %struct.inflate_state, ptr %70, i32 0, i32 3
  store i32 %69, ptr %71, align 8
  %72 = load i32, ptr %5, align 4
  %73 = load ptr, ptr %7, align 8
  %74 = getelementptr inbounds nuw %struct.inflate_state, ptr %73, i32 0, i32 10
  store i32 %72, ptr %74, align 8
  %75 = load ptr, ptr %4, align 8
  %76 = call i32 @inflateReset(ptr noundef %75)
  store i32 %76, ptr %3, align 4
  br label %77

77:                                               ; preds = %68, %44, %21, %11
  %78 = load i32, ptr %3, align 4
  ret i32 %78
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateInit2_(ptr noundef %0, i32 noundef %1, ptr noundef %2, i32 noundef %3) #0 {
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  %7 = alloca i32, align 4
  %8 = alloca ptr, align 8
  %9 = alloca i32, align 4
  %10 = alloca i32, align 4
  %11 = alloca ptr, align 8
  store ptr %0, ptr %6, align 8
  store i32 %1, ptr %7, align 4
  store ptr %2, ptr %8, align 8
  store i32 %3, ptr %9, align 4
  %12 = load ptr, ptr %8, align 8
  %13 = icmp eq ptr %12, null
  br i1 %13, label %25, label %14

14:                                               ; preds = %4
  %15 = load ptr, ptr %8, align 8
  %16 = getelementptr inbounds i8, ptr %15, i64 0
  %17 = load i8, ptr %16, align 1
  %18 = sext i8 %17 to i32
  %19 = load i8, ptr @.str, align 1
  %20 = sext i8 %19 to i32
  %21 = icmp ne i32 %18, %20
  br i1 %21, label %25, label %22

22:                                               ; preds = %14
  %23 = load i32, ptr %9, align 4
  %24 = icmp ne i32 %23, 112
  br i1 %24, label %25, label %26

25:                                               ; preds = %22, %14, %4
  store i32 -6, ptr %5, align 4
  br label %89

26:                                               ; preds = %22
  %27 = load ptr, ptr %6, align 8
  %28 = icmp eq ptr %27, null
  br i1 %28, label %29, label %30

29:                                               ; preds = %26
  store i32 -2, ptr %5, align 4
  br label %89

30:                                               ; preds = %26
  %31 = load ptr, ptr %6, align 8
  %32 = getelementptr inbounds nuw %struct.z_stream_s, ptr %31, i32 0, i32 6
  store ptr null, ptr %32, align 8
  %33 = load ptr, ptr %6, align 8
  %34 = getelementptr inbounds nuw %struct.z_stream_s, ptr %33, i32 0, i32 8
  %35 = load ptr, ptr %34, align 8
  %36 = icmp eq ptr %35, null
  br i1 %36, label %37, label %42

37:                                               ; preds = %30
  %38 = load ptr, ptr %6, align 8
  %39 = getelementptr inbounds nuw %struct.z_stream_s, ptr %38, i32 0, i32 8
  store ptr @zcalloc, ptr %39, align 8
  %40 = load ptr, ptr %6, align 8
  %41 = getelementptr inbounds nuw %struct.z_stream_s, ptr %40, i32 0, i32 10
  store ptr null, ptr %41, align 8
  br label %42

42:                                               ; preds = %37, %30
  %43 = load ptr, ptr %6, align 8
  %44 = getelementptr inbounds nuw %struct.z_stream_s, ptr %43, i32 0, i32 9
  %45 = load ptr, ptr %44, align 8
  %46 = icmp eq ptr %45, null
  br i1 %46, label %47, label %50

47:                                               ; preds = %42
  %48 = load ptr, ptr %6, align 8
  %49 = getelementptr inbounds nuw %struct.z_stream_s, ptr %48, i32 0, i32 9
  store ptr @zcfree, ptr %49, align 8
  br label %50

50:                                               ; preds = %47, %42
  %51 = load ptr, ptr %6, align 8
  %52 = getelementptr inbounds nuw %struct.z_stream_s, ptr %51, i32 0, i32 8
  %53 = load ptr, ptr %52, align 8
  %54 = load ptr, ptr %6, align 8
  %55 = getelementptr inbounds nuw %struct.z_stream_s, ptr %54, i32 0, i32 10
  %56 = load ptr, ptr %55, align 8
  %57 = call ptr %53(ptr noundef %56, i32 noundef 1, i32 noundef 7160)
  store ptr %57, ptr %11, align 8
  %58 = load ptr, ptr %11, align 8
  %59 = icmp eq ptr %58, null
  br i1 %59, label %60, label %61

60:                                               ; preds = %50
  store i32 -4, ptr %5, align 4
  br label %89

61:                                               ; preds = %50
  %62 = load ptr, ptr %11, align 8
  %63 = load ptr, ptr %6, align 8
  %64 = getelementptr inbounds nuw %struct.z_stream_s, ptr %63, i32 0, i32 7
  store ptr %62, ptr %64, align 8
  %65 = load ptr, ptr %6, align 8
  %66 = load ptr, ptr %11, align 8
  %67 = getelementptr inbounds nuw %struct.inflate_state, ptr %66, i32 0, i32 0
  store ptr %65, ptr %67, align 8
  %68 = load ptr, ptr %11, align 8
  %69 = getelementptr inbounds nuw %struct.inflate_state, ptr %68, i32 0, i32 14
  store ptr null, ptr %69, align 8
  %70 = load ptr, ptr %11, align 8
  %71 = getelementptr inbounds nuw %struct.inflate_state, ptr %70, i32 0, i32 1
  store i32 16180, ptr %71, align 8
  %72 = load ptr, ptr %6, align 8
  %73 = load i32, ptr %7, align 4
  %74 = call i32 @inflateReset2(ptr noundef %72, i32 noundef %73)
  store i32 %74, ptr %10, align 4
  %75 = load i32, ptr %10, align 4
  %76 = icmp ne i32 %75, 0
  br i1 %76, label %77, label %87

77:                                               ; preds = %61
  %78 = load ptr, ptr %6, align 8
  %79 = getelementptr inbounds nuw %struct.z_stream_s, ptr %78, i32 0, i32 9
  %80 = load ptr, ptr %79, align 8
  %81 = load ptr, ptr %6, align 8
  %82 = getelementptr inbounds nuw %struct.z_stream_s, ptr %81, i32 0, i32 10
  %83 = load ptr, ptr %82, align 8
  %84 = load ptr, ptr %11, align 8
  call void %80(ptr noundef %83, ptr noundef %84)
  %85 = load ptr, ptr %6, align 8
  %86 = getelementptr inbounds nuw %struct.z_stream_s, ptr %85, i32 0, i32 7
  store ptr null, ptr %86, align 8
  br label %87

87:                                               ; preds = %77, %61
  %88 = load i32, ptr %10, align 4
  store i32 %88, ptr %5, align 4
  br label %89

89:                                               ; preds = %87, %60, %29, %25
  %90 = load i32, ptr %5, align 4
  ret i32 %90
}

declare ptr @zcalloc(ptr noundef, i32 noundef, i32 noundef) #1

declare void @zcfree(ptr noundef, ptr noundef) #1

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateInit_(ptr noundef %0, ptr noundef %1, i32 noundef %2) #0 {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  store i32 %2, ptr %6, align 4
  %7 = load ptr, ptr %4, align 8
  %8 = load ptr, ptr %5, align 8
  %9 = load i32, ptr %6, align 4
  %10 = call i32 @inflateInit2_(ptr noundef %7, i32 noundef 15, ptr noundef %8, i32 noundef %9)
  ret i32 %10
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflatePrime(ptr noundef %0, i32 noundef %1, i32 noundef %2) #0 {
  %4 = alloca i32, align 4
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  %7 = alloca i32, align 4
  %8 = alloca ptr, align 8
  store ptr %0, ptr %5, align 8
  store i32 %1, ptr %6, align 4
  store i32 %2, ptr %7, align 4
  %9 = load ptr, ptr %5, align 8
  %10 = call i32 @inflateStateCheck(ptr noundef %9)
  %11 = icmp ne i32 %10, 0
  br i1 %11, label %12, label %13

12:                                               ; preds = %3
  store i32 -2, ptr %4, align 4
  br label %59

13:                                               ; preds = %3
  %14 = load ptr, ptr %5, align 8
  %15 = getelementptr inbounds nuw %struct.z_stream_s, ptr %14, i32 0, i32 7
  %16 = load ptr, ptr %15, align 8
  store ptr %16, ptr %8, align 8
  %17 = load i32, ptr %6, align 4
  %18 = icmp slt i32 %17, 0
  br i1 %18, label %19, label %24

19:                                               ; preds = %13
  %20 = load ptr, ptr %8, align 8
  %21 = getelementptr inbounds nuw %struct.inflate_state, ptr %20, i32 0, i32 15
  store i64 0, ptr %21, align 8
  %22 = load ptr, ptr %8, align 8
  %23 = getelementptr inbounds nuw %struct.inflate_state, ptr %22, i32 0, i32 16
  store i32 0, ptr %23, align 8
  store i32 0, ptr %4, align 4
  br label %59

24:                                               ; preds = %13
  %25 = load i32, ptr %6, align 4
  %26 = icmp sgt i32 %25, 16
  br i1 %26, label %34, label %27

27:                                               ; preds = %24
  %28 = load ptr, ptr %8, align 8
  %29 = getelementptr inbounds nuw %struct.inflate_state, ptr %28, i32 0, i32 16
  %30 = load i32, ptr %29, align 8
  %31 = load i32, ptr %6, align 4
  %32 = add i32 %30, %31
  %33 = icmp ugt i32 %32, 32
  br i1 %33, label %34, label %35

34:                                               ; preds = %27, %24
  store i32 -2, ptr %4, align 4
  br label %59

35:                                               ; preds = %27
  %36 = load i32, ptr %6, align 4
  %37 = zext i32 %36 to i64
  %38 = shl i64 1, %37
  %39 = sub nsw i64 %38, 1
  %40 = load i32, ptr %7, align 4
  %41 = sext i32 %40 to i64
  %42 = and i64 %41, %39
  %43 = trunc i64 %42 to i32
  store i32 %43, ptr %7, align 4
  %44 = load i32, ptr %7, align 4
  %45 = load ptr, ptr %8, align 8
  %46 = getelementptr inbounds nuw %struct.inflate_state, ptr %45, i32 0, i32 16
  %47 = load i32, ptr %46, align 8
  %48 = shl i32 %44, %47
  %49 = zext i32 %48 to i64
  %50 = load ptr, ptr %8, align 8
  %51 = getelementptr inbounds nuw %struct.inflate_state, ptr %50, i32 0, i32 15
  %52 = load i64, ptr %51, align 8
  %53 = add i64 %52, %49
  store i64 %53, ptr %51, align 8
  %54 = load i32, ptr %6, align 4
  %55 = load ptr, ptr %8, align 8
  %56 = getelementptr inbounds nuw %struct.inflate_state, ptr %55, i32 0, i32 16
  %57 = load i32, ptr %56, align 8
  %58 = add i32 %57, %54
  store i32 %58, ptr %56, align 8
  store i32 0, ptr %4, align 4
  br label %59

59:                                               ; preds = %35, %34, %19, %12
  %60 = load i32, ptr %4, align 4
  ret i32 %60
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflate(ptr noundef %0, i32 noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = alloca i32, align 4
  %10 = alloca i32, align 4
  %11 = alloca i64, align 8
  %12 = alloca i32, align 4
  %13 = alloca i32, align 4
  %14 = alloca i32, align 4
  %15 = alloca i32, align 4
  %16 = alloca ptr, align 8
  %17 = alloca %struct.code, align 2
  %18 = alloca %struct.code, align 2
  %19 = alloca i32, align 4
  %20 = alloca i32, align 4
  %21 = alloca [4 x i8], align 1
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  %22 = load ptr, ptr %4, align 8
  %23 = call i32 @inflateStateCheck(ptr noundef %22)
  %24 = icmp ne i32 %23, 0
  br i1 %24, label %40, label %25

25:                                               ; preds = %2
  %26 = load ptr, ptr %4, align 8
  %27 = getelementptr inbounds nuw %struct.z_stream_s, ptr %26, i32 0, i32 3
  %28 = load ptr, ptr %27, align 8
  %29 = icmp eq ptr %28, null
  br i1 %29, label %40, label %30

30:                                               ; preds = %25
  %31 = load ptr, ptr %4, align 8
  %32 = getelementptr inbounds nuw %struct.z_stream_s, ptr %31, i32 0, i32 0
  %33 = load ptr, ptr %32, align 8
  %34 = icmp eq ptr %33, null
  br i1 %34, label %35, label %41

35:                                               ; preds = %30
  %36 = load ptr, ptr %4, align 8
  %37 = getelementptr inbounds nuw %struct.z_stream_s, ptr %36, i32 0, i32 1
  %38 = load i32, ptr %37, align 8
  %39 = icmp ne i32 %38, 0
  br i1 %39, label %40, label %41

40:                                               ; preds = %35, %25, %2
  store i32 -2, ptr %3, align 4
  br label %3022

41:                                               ; preds = %35, %30
  %42 = load ptr, ptr %4, align 8
  %43 = getelementptr inbounds nuw %struct.z_stream_s, ptr %42, i32 0, i32 7
  %44 = load ptr, ptr %43, align 8
  store ptr %44, ptr %6, align 8
  %45 = load ptr, ptr %6, align 8
  %46 = getelementptr inbounds nuw %struct.inflate_state, ptr %45, i32 0, i32 1
  %47 = load i32, ptr %46, align 8
  %48 = icmp eq i32 %47, 16191
  br i1 %48, label %49, label %52

49:                                               ; preds = %41
  %50 = load ptr, ptr %6, align 8
  %51 = getelementptr inbounds nuw %struct.inflate_state, ptr %50, i32 0, i32 1
  store i32 16192, ptr %51, align 8
  br label %52

52:                                               ; preds = %49, %41
  br label %53

53:                                               ; preds = %52
  %54 = load ptr, ptr %4, align 8
  %55 = getelementptr inbounds nuw %struct.z_stream_s, ptr %54, i32 0, i32 3
  %56 = load ptr, ptr %55, align 8
  store ptr %56, ptr %8, align 8
  %57 = load ptr, ptr %4, align 8
  %58 = getelementptr inbounds nuw %struct.z_stream_s, ptr %57, i32 0, i32 4
  %59 = load i32, ptr %58, align 8
  store i32 %59, ptr %10, align 4
  %60 = load ptr, ptr %4, align 8
  %61 = getelementptr inbounds nuw %struct.z_stream_s, ptr %60, i32 0, i32 0
  %62 = load ptr, ptr %61, align 8
  store ptr %62, ptr %7, align 8
  %63 = load ptr, ptr %4, align 8
  %64 = getelementptr inbounds nuw %struct.z_stream_s, ptr %63, i32 0, i32 1
  %65 = load i32, ptr %64, align 8
  store i32 %65, ptr %9, align 4
  %66 = load ptr, ptr %6, align 8
  %67 = getelementptr inbounds nuw %struct.inflate_state, ptr %66, i32 0, i32 15
  %68 = load i64, ptr %67, align 8
  store i64 %68, ptr %11, align 8
  %69 = load ptr, ptr %6, align 8
  %70 = getelementptr inbounds nuw %struct.inflate_state, ptr %69, i32 0, i32 16
  %71 = load i32, ptr %70, align 8
  store i32 %71, ptr %12, align 4
  br label %72

72:                                               ; preds = %53
  %73 = load i32, ptr %9, align 4
  store i32 %73, ptr %13, align 4
  %74 = load i32, ptr %10, align 4
  store i32 %74, ptr %14, align 4
  store i32 0, ptr %20, align 4
  br label %75

75:                                               ; preds = %2839, %72
  %76 = load ptr, ptr %6, align 8
  %77 = getelementptr inbounds nuw %struct.inflate_state, ptr %76, i32 0, i32 1
  %78 = load i32, ptr %77, align 8
  switch i32 %78, label %2838 [
    i32 16180, label %79
    i32 16181, label %250
    i32 16182, label %350
    i32 16183, label %429
    i32 16184, label %509
    i32 16185, label %603
    i32 16186, label %727
    i32 16187, label %840
    i32 16188, label %951
    i32 16189, label %1031
    i32 16190, label %1081
    i32 16191, label %1115
    i32 16192, label %1123
    i32 16193, label %1215
    i32 16194, label %1278
    i32 16195, label %1281
    i32 16196, label %1330
    i32 16197, label %1412
    i32 16198, label %1523
    i32 16199, label %1929
    i32 16200, label %1932
    i32 16201, label %2185
    i32 16202, label %2260
    i32 16203, label %2430
    i32 16204, label %2500
    i32 16205, label %2624
    i32 16206, label %2639
    i32 16207, label %2774
    i32 16208, label %2834
    i32 16209, label %2835
    i32 16210, label %2836
    i32 16211, label %2837
  ]

79:                                               ; preds = %75
  %80 = load ptr, ptr %6, align 8
  %81 = getelementptr inbounds nuw %struct.inflate_state, ptr %80, i32 0, i32 3
  %82 = load i32, ptr %81, align 8
  %83 = icmp eq i32 %82, 0
  br i1 %83, label %84, label %87

84:                                               ; preds = %79
  %85 = load ptr, ptr %6, align 8
  %86 = getelementptr inbounds nuw %struct.inflate_state, ptr %85, i32 0, i32 1
  store i32 16192, ptr %86, align 8
  br label %2839

87:                                               ; preds = %79
  br label %88

88:                                               ; preds = %87
  br label %89

89:                                               ; preds = %111, %88
  %90 = load i32, ptr %12, align 4
  %91 = icmp ult i32 %90, 16
  br i1 %91, label %92, label %112

92:                                               ; preds = %89
  br label %93

93:                                               ; preds = %92
  %94 = load i32, ptr %9, align 4
  %95 = icmp eq i32 %94, 0
  br i1 %95, label %96, label %97

96:                                               ; preds = %93
  br label %2840

97:                                               ; preds = %93
  %98 = load i32, ptr %9, align 4
  %99 = add i32 %98, -1
  store i32 %99, ptr %9, align 4
  %100 = load ptr, ptr %7, align 8
  %101 = getelementptr inbounds nuw i8, ptr %100, i32 1
  store ptr %101, ptr %7, align 8
  %102 = load i8, ptr %100, align 1
  %103 = zext i8 %102 to i64
  %104 = load i32, ptr %12, align 4
  %105 = zext i32 %104 to i64
  %106 = shl i64 %103, %105
  %107 = load i64, ptr %11, align 8
  %108 = add i64 %107, %106
  store i64 %108, ptr %11, align 8
  %109 = load i32, ptr %12, align 4
  %110 = add i32 %109, 8
  store i32 %110, ptr %12, align 4
  br label %111

111:                                              ; preds = %97
  br label %89, !llvm.loop !5

112:                                              ; preds = %89
  br label %113

113:                                              ; preds = %112
  %114 = load ptr, ptr %6, align 8
  %115 = getelementptr inbounds nuw %struct.inflate_state, ptr %114, i32 0, i32 3
  %116 = load i32, ptr %115, align 8
  %117 = and i32 %116, 2
  %118 = icmp ne i32 %117, 0
  br i1 %118, label %119, label %154

119:                                              ; preds = %113
  %120 = load i64, ptr %11, align 8
  %121 = icmp eq i64 %120, 35615
  br i1 %121, label %122, label %154

122:                                              ; preds = %119
  %123 = load ptr, ptr %6, align 8
  %124 = getelementptr inbounds nuw %struct.inflate_state, ptr %123, i32 0, i32 10
  %125 = load i32, ptr %124, align 8
  %126 = icmp eq i32 %125, 0
  br i1 %126, label %127, label %130

127:                                              ; preds = %122
  %128 = load ptr, ptr %6, align 8
  %129 = getelementptr inbounds nuw %struct.inflate_state, ptr %128, i32 0, i32 10
  store i32 15, ptr %129, align 8
  br label %130

130:                                              ; preds = %127, %122
  %131 = call i64 @crc32(i64 noundef 0, ptr noundef null, i32 noundef 0)
  %132 = load ptr, ptr %6, align 8
  %133 = getelementptr inbounds nuw %struct.inflate_state, ptr %132, i32 0, i32 7
  store i64 %131, ptr %133, align 8
  br label %134

134:                                              ; preds = %130
  %135 = load i64, ptr %11, align 8
  %136 = trunc i64 %135 to i8
  %137 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  store i8 %136, ptr %137, align 1
  %138 = load i64, ptr %11, align 8
  %139 = lshr i64 %138, 8
  %140 = trunc i64 %139 to i8
  %141 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 1
  store i8 %140, ptr %141, align 1
  %142 = load ptr, ptr %6, align 8
  %143 = getelementptr inbounds nuw %struct.inflate_state, ptr %142, i32 0, i32 7
  %144 = load i64, ptr %143, align 8
  %145 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  %146 = call i64 @crc32(i64 noundef %144, ptr noundef %145, i32 noundef 2)
  %147 = load ptr, ptr %6, align 8
  %148 = getelementptr inbounds nuw %struct.inflate_state, ptr %147, i32 0, i32 7
  store i64 %146, ptr %148, align 8
  br label %149

149:                                              ; preds = %134
  br label %150

150:                                              ; preds = %149
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %151

151:                                              ; preds = %150
  %152 = load ptr, ptr %6, align 8
  %153 = getelementptr inbounds nuw %struct.inflate_state, ptr %152, i32 0, i32 1
  store i32 16181, ptr %153, align 8
  br label %2839

154:                                              ; preds = %119, %113
  %155 = load ptr, ptr %6, align 8
  %156 = getelementptr inbounds nuw %struct.inflate_state, ptr %155, i32 0, i32 9
  %157 = load ptr, ptr %156, align 8
  %158 = icmp ne ptr %157, null
  br i1 %158, label %159, label %164

159:                                              ; preds = %154
  %160 = load ptr, ptr %6, align 8
  %161 = getelementptr inbounds nuw %struct.inflate_state, ptr %160, i32 0, i32 9
  %162 = load ptr, ptr %161, align 8
  %163 = getelementptr inbounds nuw %struct.gz_header_s, ptr %162, i32 0, i32 12
  store i32 -1, ptr %163, align 8
  br label %164

164:                                              ; preds = %159, %154
  %165 = load ptr, ptr %6, align 8
  %166 = getelementptr inbounds nuw %struct.inflate_state, ptr %165, i32 0, i32 3
  %167 = load i32, ptr %166, align 8
  %168 = and i32 %167, 1
  %169 = icmp ne i32 %168, 0
  br i1 %169, label %170, label %181

170:                                              ; preds = %164
  %171 = load i64, ptr %11, align 8
  %172 = trunc i64 %171 to i32
  %173 = and i32 %172, 255
  %174 = shl i32 %173, 8
  %175 = zext i32 %174 to i64
  %176 = load i64, ptr %11, align 8
  %177 = lshr i64 %176, 8
  %178 = add i64 %175, %177
  %179 = urem i64 %178, 31
  %180 = icmp ne i64 %179, 0
  br i1 %180, label %181, label %186

181:                                              ; preds = %170, %164
  %182 = load ptr, ptr %4, align 8
  %183 = getelementptr inbounds nuw %struct.z_stream_s, ptr %182, i32 0, i32 6
  store ptr @.str.1, ptr %183, align 8
  %184 = load ptr, ptr %6, align 8
  %185 = getelementptr inbounds nuw %struct.inflate_state, ptr %184, i32 0, i32 1
  store i32 16209, ptr %185, align 8
  br label %2839

186:                                              ; preds = %170
  %187 = load i64, ptr %11, align 8
  %188 = trunc i64 %187 to i32
  %189 = and i32 %188, 15
  %190 = icmp ne i32 %189, 8
  br i1 %190, label %191, label %196

191:                                              ; preds = %186
  %192 = load ptr, ptr %4, align 8
  %193 = getelementptr inbounds nuw %struct.z_stream_s, ptr %192, i32 0, i32 6
  store ptr @.str.2, ptr %193, align 8
  %194 = load ptr, ptr %6, align 8
  %195 = getelementptr inbounds nuw %struct.inflate_state, ptr %194, i32 0, i32 1
  store i32 16209, ptr %195, align 8
  br label %2839

196:                                              ; preds = %186
  br label %197

197:                                              ; preds = %196
  %198 = load i64, ptr %11, align 8
  %199 = lshr i64 %198, 4
  store i64 %199, ptr %11, align 8
  %200 = load i32, ptr %12, align 4
  %201 = sub i32 %200, 4
  store i32 %201, ptr %12, align 4
  br label %202

202:                                              ; preds = %197
  %203 = load i64, ptr %11, align 8
  %204 = trunc i64 %203 to i32
  %205 = and i32 %204, 15
  %206 = add i32 %205, 8
  store i32 %206, ptr %19, align 4
  %207 = load ptr, ptr %6, align 8
  %208 = getelementptr inbounds nuw %struct.inflate_state, ptr %207, i32 0, i32 10
  %209 = load i32, ptr %208, align 8
  %210 = icmp eq i32 %209, 0
  br i1 %210, label %211, label %215

211:                                              ; preds = %202
  %212 = load i32, ptr %19, align 4
  %213 = load ptr, ptr %6, align 8
  %214 = getelementptr inbounds nuw %struct.inflate_state, ptr %213, i32 0, i32 10
  store i32 %212, ptr %214, align 8
  br label %215

215:                                              ; preds = %211, %202
  %216 = load i32, ptr %19, align 4
  %217 = icmp ugt i32 %216, 15
  br i1 %217, label %224, label %218

218:                                              ; preds = %215
  %219 = load i32, ptr %19, align 4
  %220 = load ptr, ptr %6, align 8
  %221 = getelementptr inbounds nuw %struct.inflate_state, ptr %220, i32 0, i32 10
  %222 = load i32, ptr %221, align 8
  %223 = icmp ugt i32 %219, %222
  br i1 %223, label %224, label %229

224:                                              ; preds = %218, %215
  %225 = load ptr, ptr %4, align 8
  %226 = getelementptr inbounds nuw %struct.z_stream_s, ptr %225, i32 0, i32 6
  store ptr @.str.3, ptr %226, align 8
  %227 = load ptr, ptr %6, align 8
  %228 = getelementptr inbounds nuw %struct.inflate_state, ptr %227, i32 0, i32 1
  store i32 16209, ptr %228, align 8
  br label %2839

229:                                              ; preds = %218
  %230 = load i32, ptr %19, align 4
  %231 = shl i32 1, %230
  %232 = load ptr, ptr %6, align 8
  %233 = getelementptr inbounds nuw %struct.inflate_state, ptr %232, i32 0, i32 6
  store i32 %231, ptr %233, align 4
  %234 = load ptr, ptr %6, align 8
  %235 = getelementptr inbounds nuw %struct.inflate_state, ptr %234, i32 0, i32 5
  store i32 0, ptr %235, align 8
  %236 = call i64 @adler32(i64 noundef 0, ptr noundef null, i32 noundef 0)
  %237 = load ptr, ptr %6, align 8
  %238 = getelementptr inbounds nuw %struct.inflate_state, ptr %237, i32 0, i32 7
  store i64 %236, ptr %238, align 8
  %239 = load ptr, ptr %4, align 8
  %240 = getelementptr inbounds nuw %struct.z_stream_s, ptr %239, i32 0, i32 12
  store i64 %236, ptr %240, align 8
  %241 = load i64, ptr %11, align 8
  %242 = and i64 %241, 512
  %243 = icmp ne i64 %242, 0
  %244 = zext i1 %243 to i64
  %245 = select i1 %243, i32 16189, i32 16191
  %246 = load ptr, ptr %6, align 8
  %247 = getelementptr inbounds nuw %struct.inflate_state, ptr %246, i32 0, i32 1
  store i32 %245, ptr %247, align 8
  br label %248

248:                                              ; preds = %229
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %249

249:                                              ; preds = %248
  br label %2839

250:                                              ; preds = %75
  br label %251

251:                                              ; preds = %250
  br label %252

252:                                              ; preds = %274, %251
  %253 = load i32, ptr %12, align 4
  %254 = icmp ult i32 %253, 16
  br i1 %254, label %255, label %275

255:                                              ; preds = %252
  br label %256

256:                                              ; preds = %255
  %257 = load i32, ptr %9, align 4
  %258 = icmp eq i32 %257, 0
  br i1 %258, label %259, label %260

259:                                              ; preds = %256
  br label %2840

260:                                              ; preds = %256
  %261 = load i32, ptr %9, align 4
  %262 = add i32 %261, -1
  store i32 %262, ptr %9, align 4
  %263 = load ptr, ptr %7, align 8
  %264 = getelementptr inbounds nuw i8, ptr %263, i32 1
  store ptr %264, ptr %7, align 8
  %265 = load i8, ptr %263, align 1
  %266 = zext i8 %265 to i64
  %267 = load i32, ptr %12, align 4
  %268 = zext i32 %267 to i64
  %269 = shl i64 %266, %268
  %270 = load i64, ptr %11, align 8
  %271 = add i64 %270, %269
  store i64 %271, ptr %11, align 8
  %272 = load i32, ptr %12, align 4
  %273 = add i32 %272, 8
  store i32 %273, ptr %12, align 4
  br label %274

274:                                              ; preds = %260
  br label %252, !llvm.loop !7

275:                                              ; preds = %252
  br label %276

276:                                              ; preds = %275
  %277 = load i64, ptr %11, align 8
  %278 = trunc i64 %277 to i32
  %279 = load ptr, ptr %6, align 8
  %280 = getelementptr inbounds nuw %struct.inflate_state, ptr %279, i32 0, i32 5
  store i32 %278, ptr %280, align 8
  %281 = load ptr, ptr %6, align 8
  %282 = getelementptr inbounds nuw %struct.inflate_state, ptr %281, i32 0, i32 5
  %283 = load i32, ptr %282, align 8
  %284 = and i32 %283, 255
  %285 = icmp ne i32 %284, 8
  br i1 %285, label %286, label %291

286:                                              ; preds = %276
  %287 = load ptr, ptr %4, align 8
  %288 = getelementptr inbounds nuw %struct.z_stream_s, ptr %287, i32 0, i32 6
  store ptr @.str.2, ptr %288, align 8
  %289 = load ptr, ptr %6, align 8
  %290 = getelementptr inbounds nuw %struct.inflate_state, ptr %289, i32 0, i32 1
  store i32 16209, ptr %290, align 8
  br label %2839

291:                                              ; preds = %276
  %292 = load ptr, ptr %6, align 8
  %293 = getelementptr inbounds nuw %struct.inflate_state, ptr %292, i32 0, i32 5
  %294 = load i32, ptr %293, align 8
  %295 = and i32 %294, 57344
  %296 = icmp ne i32 %295, 0
  br i1 %296, label %297, label %302

297:                                              ; preds = %291
  %298 = load ptr, ptr %4, align 8
  %299 = getelementptr inbounds nuw %struct.z_stream_s, ptr %298, i32 0, i32 6
  store ptr @.str.4, ptr %299, align 8
  %300 = load ptr, ptr %6, align 8
  %301 = getelementptr inbounds nuw %struct.inflate_state, ptr %300, i32 0, i32 1
  store i32 16209, ptr %301, align 8
  br label %2839

302:                                              ; preds = %291
  %303 = load ptr, ptr %6, align 8
  %304 = getelementptr inbounds nuw %struct.inflate_state, ptr %303, i32 0, i32 9
  %305 = load ptr, ptr %304, align 8
  %306 = icmp ne ptr %305, null
  br i1 %306, label %307, label %316

307:                                              ; preds = %302
  %308 = load i64, ptr %11, align 8
  %309 = lshr i64 %308, 8
  %310 = and i64 %309, 1
  %311 = trunc i64 %310 to i32
  %312 = load ptr, ptr %6, align 8
  %313 = getelementptr inbounds nuw %struct.inflate_state, ptr %312, i32 0, i32 9
  %314 = load ptr, ptr %313, align 8
  %315 = getelementptr inbounds nuw %struct.gz_header_s, ptr %314, i32 0, i32 0
  store i32 %311, ptr %315, align 8
  br label %316

316:                                              ; preds = %307, %302
  %317 = load ptr, ptr %6, align 8
  %318 = getelementptr inbounds nuw %struct.inflate_state, ptr %317, i32 0, i32 5
  %319 = load i32, ptr %318, align 8
  %320 = and i32 %319, 512
  %321 = icmp ne i32 %320, 0
  br i1 %321, label %322, label %345

322:                                              ; preds = %316
  %323 = load ptr, ptr %6, align 8
  %324 = getelementptr inbounds nuw %struct.inflate_state, ptr %323, i32 0, i32 3
  %325 = load i32, ptr %324, align 8
  %326 = and i32 %325, 4
  %327 = icmp ne i32 %326, 0
  br i1 %327, label %328, label %345

328:                                              ; preds = %322
  br label %329

329:                                              ; preds = %328
  %330 = load i64, ptr %11, align 8
  %331 = trunc i64 %330 to i8
  %332 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  store i8 %331, ptr %332, align 1
  %333 = load i64, ptr %11, align 8
  %334 = lshr i64 %333, 8
  %335 = trunc i64 %334 to i8
  %336 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 1
  store i8 %335, ptr %336, align 1
  %337 = load ptr, ptr %6, align 8
  %338 = getelementptr inbounds nuw %struct.inflate_state, ptr %337, i32 0, i32 7
  %339 = load i64, ptr %338, align 8
  %340 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  %341 = call i64 @crc32(i64 noundef %339, ptr noundef %340, i32 noundef 2)
  %342 = load ptr, ptr %6, align 8
  %343 = getelementptr inbounds nuw %struct.inflate_state, ptr %342, i32 0, i32 7
  store i64 %341, ptr %343, align 8
  br label %344

344:                                              ; preds = %329
  br label %345

345:                                              ; preds = %344, %322, %316
  br label %346

346:                                              ; preds = %345
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %347

347:                                              ; preds = %346
  %348 = load ptr, ptr %6, align 8
  %349 = getelementptr inbounds nuw %struct.inflate_state, ptr %348, i32 0, i32 1
  store i32 16182, ptr %349, align 8
  br label %350

350:                                              ; preds = %75, %347
  br label %351

351:                                              ; preds = %350
  br label %352

352:                                              ; preds = %374, %351
  %353 = load i32, ptr %12, align 4
  %354 = icmp ult i32 %353, 32
  br i1 %354, label %355, label %375

355:                                              ; preds = %352
  br label %356

356:                                              ; preds = %355
  %357 = load i32, ptr %9, align 4
  %358 = icmp eq i32 %357, 0
  br i1 %358, label %359, label %360

359:                                              ; preds = %356
  br label %2840

360:                                              ; preds = %356
  %361 = load i32, ptr %9, align 4
  %362 = add i32 %361, -1
  store i32 %362, ptr %9, align 4
  %363 = load ptr, ptr %7, align 8
  %364 = getelementptr inbounds nuw i8, ptr %363, i32 1
  store ptr %364, ptr %7, align 8
  %365 = load i8, ptr %363, align 1
  %366 = zext i8 %365 to i64
  %367 = load i32, ptr %12, align 4
  %368 = zext i32 %367 to i64
  %369 = shl i64 %366, %368
  %370 = load i64, ptr %11, align 8
  %371 = add i64 %370, %369
  store i64 %371, ptr %11, align 8
  %372 = load i32, ptr %12, align 4
  %373 = add i32 %372, 8
  store i32 %373, ptr %12, align 4
  br label %374

374:                                              ; preds = %360
  br label %352, !llvm.loop !8

375:                                              ; preds = %352
  br label %376

376:                                              ; preds = %375
  %377 = load ptr, ptr %6, align 8
  %378 = getelementptr inbounds nuw %struct.inflate_state, ptr %377, i32 0, i32 9
  %379 = load ptr, ptr %378, align 8
  %380 = icmp ne ptr %379, null
  br i1 %380, label %381, label %387

381:                                              ; preds = %376
  %382 = load i64, ptr %11, align 8
  %383 = load ptr, ptr %6, align 8
  %384 = getelementptr inbounds nuw %struct.inflate_state, ptr %383, i32 0, i32 9
  %385 = load ptr, ptr %384, align 8
  %386 = getelementptr inbounds nuw %struct.gz_header_s, ptr %385, i32 0, i32 1
  store i64 %382, ptr %386, align 8
  br label %387

387:                                              ; preds = %381, %376
  %388 = load ptr, ptr %6, align 8
  %389 = getelementptr inbounds nuw %struct.inflate_state, ptr %388, i32 0, i32 5
  %390 = load i32, ptr %389, align 8
  %391 = and i32 %390, 512
  %392 = icmp ne i32 %391, 0
  br i1 %392, label %393, label %424

393:                                              ; preds = %387
  %394 = load ptr, ptr %6, align 8
  %395 = getelementptr inbounds nuw %struct.inflate_state, ptr %394, i32 0, i32 3
  %396 = load i32, ptr %395, align 8
  %397 = and i32 %396, 4
  %398 = icmp ne i32 %397, 0
  br i1 %398, label %399, label %424

399:                                              ; preds = %393
  br label %400

400:                                              ; preds = %399
  %401 = load i64, ptr %11, align 8
  %402 = trunc i64 %401 to i8
  %403 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  store i8 %402, ptr %403, align 1
  %404 = load i64, ptr %11, align 8
  %405 = lshr i64 %404, 8
  %406 = trunc i64 %405 to i8
  %407 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 1
  store i8 %406, ptr %407, align 1
  %408 = load i64, ptr %11, align 8
  %409 = lshr i64 %408, 16
  %410 = trunc i64 %409 to i8
  %411 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 2
  store i8 %410, ptr %411, align 1
  %412 = load i64, ptr %11, align 8
  %413 = lshr i64 %412, 24
  %414 = trunc i64 %413 to i8
  %415 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 3
  store i8 %414, ptr %415, align 1
  %416 = load ptr, ptr %6, align 8
  %417 = getelementptr inbounds nuw %struct.inflate_state, ptr %416, i32 0, i32 7
  %418 = load i64, ptr %417, align 8
  %419 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  %420 = call i64 @crc32(i64 noundef %418, ptr noundef %419, i32 noundef 4)
  %421 = load ptr, ptr %6, align 8
  %422 = getelementptr inbounds nuw %struct.inflate_state, ptr %421, i32 0, i32 7
  store i64 %420, ptr %422, align 8
  br label %423

423:                                              ; preds = %400
  br label %424

424:                                              ; preds = %423, %393, %387
  br label %425

425:                                              ; preds = %424
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %426

426:                                              ; preds = %425
  %427 = load ptr, ptr %6, align 8
  %428 = getelementptr inbounds nuw %struct.inflate_state, ptr %427, i32 0, i32 1
  store i32 16183, ptr %428, align 8
  br label %429

429:                                              ; preds = %75, %426
  br label %430

430:                                              ; preds = %429
  br label %431

431:                                              ; preds = %453, %430
  %432 = load i32, ptr %12, align 4
  %433 = icmp ult i32 %432, 16
  br i1 %433, label %434, label %454

434:                                              ; preds = %431
  br label %435

435:                                              ; preds = %434
  %436 = load i32, ptr %9, align 4
  %437 = icmp eq i32 %436, 0
  br i1 %437, label %438, label %439

438:                                              ; preds = %435
  br label %2840

439:                                              ; preds = %435
  %440 = load i32, ptr %9, align 4
  %441 = add i32 %440, -1
  store i32 %441, ptr %9, align 4
  %442 = load ptr, ptr %7, align 8
  %443 = getelementptr inbounds nuw i8, ptr %442, i32 1
  store ptr %443, ptr %7, align 8
  %444 = load i8, ptr %442, align 1
  %445 = zext i8 %444 to i64
  %446 = load i32, ptr %12, align 4
  %447 = zext i32 %446 to i64
  %448 = shl i64 %445, %447
  %449 = load i64, ptr %11, align 8
  %450 = add i64 %449, %448
  store i64 %450, ptr %11, align 8
  %451 = load i32, ptr %12, align 4
  %452 = add i32 %451, 8
  store i32 %452, ptr %12, align 4
  br label %453

453:                                              ; preds = %439
  br label %431, !llvm.loop !9

454:                                              ; preds = %431
  br label %455

455:                                              ; preds = %454
  %456 = load ptr, ptr %6, align 8
  %457 = getelementptr inbounds nuw %struct.inflate_state, ptr %456, i32 0, i32 9
  %458 = load ptr, ptr %457, align 8
  %459 = icmp ne ptr %458, null
  br i1 %459, label %460, label %475

460:                                              ; preds = %455
  %461 = load i64, ptr %11, align 8
  %462 = and i64 %461, 255
  %463 = trunc i64 %462 to i32
  %464 = load ptr, ptr %6, align 8
  %465 = getelementptr inbounds nuw %struct.inflate_state, ptr %464, i32 0, i32 9
  %466 = load ptr, ptr %465, align 8
  %467 = getelementptr inbounds nuw %struct.gz_header_s, ptr %466, i32 0, i32 2
  store i32 %463, ptr %467, align 8
  %468 = load i64, ptr %11, align 8
  %469 = lshr i64 %468, 8
  %470 = trunc i64 %469 to i32
  %471 = load ptr, ptr %6, align 8
  %472 = getelementptr inbounds nuw %struct.inflate_state, ptr %471, i32 0, i32 9
  %473 = load ptr, ptr %472, align 8
  %474 = getelementptr inbounds nuw %struct.gz_header_s, ptr %473, i32 0, i32 3
  store i32 %470, ptr %474, align 4
  br label %475

475:                                              ; preds = %460, %455
  %476 = load ptr, ptr %6, align 8
  %477 = getelementptr inbounds nuw %struct.inflate_state, ptr %476, i32 0, i32 5
  %478 = load i32, ptr %477, align 8
  %479 = and i32 %478, 512
  %480 = icmp ne i32 %479, 0
  br i1 %480, label %481, label %504

481:                                              ; preds = %475
  %482 = load ptr, ptr %6, align 8
  %483 = getelementptr inbounds nuw %struct.inflate_state, ptr %482, i32 0, i32 3
  %484 = load i32, ptr %483, align 8
  %485 = and i32 %484, 4
  %486 = icmp ne i32 %485, 0
  br i1 %486, label %487, label %504

487:                                              ; preds = %481
  br label %488

488:                                              ; preds = %487
  %489 = load i64, ptr %11, align 8
  %490 = trunc i64 %489 to i8
  %491 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  store i8 %490, ptr %491, align 1
  %492 = load i64, ptr %11, align 8
  %493 = lshr i64 %492, 8
  %494 = trunc i64 %493 to i8
  %495 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 1
  store i8 %494, ptr %495, align 1
  %496 = load ptr, ptr %6, align 8
  %497 = getelementptr inbounds nuw %struct.inflate_state, ptr %496, i32 0, i32 7
  %498 = load i64, ptr %497, align 8
  %499 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  %500 = call i64 @crc32(i64 noundef %498, ptr noundef %499, i32 noundef 2)
  %501 = load ptr, ptr %6, align 8
  %502 = getelementptr inbounds nuw %struct.inflate_state, ptr %501, i32 0, i32 7
  store i64 %500, ptr %502, align 8
  br label %503

503:                                              ; preds = %488
  br label %504

504:                                              ; preds = %503, %481, %475
  br label %505

505:                                              ; preds = %504
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %506

506:                                              ; preds = %505
  %507 = load ptr, ptr %6, align 8
  %508 = getelementptr inbounds nuw %struct.inflate_state, ptr %507, i32 0, i32 1
  store i32 16184, ptr %508, align 8
  br label %509

509:                                              ; preds = %75, %506
  %510 = load ptr, ptr %6, align 8
  %511 = getelementptr inbounds nuw %struct.inflate_state, ptr %510, i32 0, i32 5
  %512 = load i32, ptr %511, align 8
  %513 = and i32 %512, 1024
  %514 = icmp ne i32 %513, 0
  br i1 %514, label %515, label %589

515:                                              ; preds = %509
  br label %516

516:                                              ; preds = %515
  br label %517

517:                                              ; preds = %539, %516
  %518 = load i32, ptr %12, align 4
  %519 = icmp ult i32 %518, 16
  br i1 %519, label %520, label %540

520:                                              ; preds = %517
  br label %521

521:                                              ; preds = %520
  %522 = load i32, ptr %9, align 4
  %523 = icmp eq i32 %522, 0
  br i1 %523, label %524, label %525

524:                                              ; preds = %521
  br label %2840

525:                                              ; preds = %521
  %526 = load i32, ptr %9, align 4
  %527 = add i32 %526, -1
  store i32 %527, ptr %9, align 4
  %528 = load ptr, ptr %7, align 8
  %529 = getelementptr inbounds nuw i8, ptr %528, i32 1
  store ptr %529, ptr %7, align 8
  %530 = load i8, ptr %528, align 1
  %531 = zext i8 %530 to i64
  %532 = load i32, ptr %12, align 4
  %533 = zext i32 %532 to i64
  %534 = shl i64 %531, %533
  %535 = load i64, ptr %11, align 8
  %536 = add i64 %535, %534
  store i64 %536, ptr %11, align 8
  %537 = load i32, ptr %12, align 4
  %538 = add i32 %537, 8
  store i32 %538, ptr %12, align 4
  br label %539

539:                                              ; preds = %525
  br label %517, !llvm.loop !10

540:                                              ; preds = %517
  br label %541

541:                                              ; preds = %540
  %542 = load i64, ptr %11, align 8
  %543 = trunc i64 %542 to i32
  %544 = load ptr, ptr %6, align 8
  %545 = getelementptr inbounds nuw %struct.inflate_state, ptr %544, i32 0, i32 17
  store i32 %543, ptr %545, align 4
  %546 = load ptr, ptr %6, align 8
  %547 = getelementptr inbounds nuw %struct.inflate_state, ptr %546, i32 0, i32 9
  %548 = load ptr, ptr %547, align 8
  %549 = icmp ne ptr %548, null
  br i1 %549, label %550, label %557

550:                                              ; preds = %541
  %551 = load i64, ptr %11, align 8
  %552 = trunc i64 %551 to i32
  %553 = load ptr, ptr %6, align 8
  %554 = getelementptr inbounds nuw %struct.inflate_state, ptr %553, i32 0, i32 9
  %555 = load ptr, ptr %554, align 8
  %556 = getelementptr inbounds nuw %struct.gz_header_s, ptr %555, i32 0, i32 5
  store i32 %552, ptr %556, align 8
  br label %557

557:                                              ; preds = %550, %541
  %558 = load ptr, ptr %6, align 8
  %559 = getelementptr inbounds nuw %struct.inflate_state, ptr %558, i32 0, i32 5
  %560 = load i32, ptr %559, align 8
  %561 = and i32 %560, 512
  %562 = icmp ne i32 %561, 0
  br i1 %562, label %563, label %586

563:                                              ; preds = %557
  %564 = load ptr, ptr %6, align 8
  %565 = getelementptr inbounds nuw %struct.inflate_state, ptr %564, i32 0, i32 3
  %566 = load i32, ptr %565, align 8
  %567 = and i32 %566, 4
  %568 = icmp ne i32 %567, 0
  br i1 %568, label %569, label %586

569:                                              ; preds = %563
  br label %570

570:                                              ; preds = %569
  %571 = load i64, ptr %11, align 8
  %572 = trunc i64 %571 to i8
  %573 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  store i8 %572, ptr %573, align 1
  %574 = load i64, ptr %11, align 8
  %575 = lshr i64 %574, 8
  %576 = trunc i64 %575 to i8
  %577 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 1
  store i8 %576, ptr %577, align 1
  %578 = load ptr, ptr %6, align 8
  %579 = getelementptr inbounds nuw %struct.inflate_state, ptr %578, i32 0, i32 7
  %580 = load i64, ptr %579, align 8
  %581 = getelementptr inbounds [4 x i8], ptr %21, i64 0, i64 0
  %582 = call i64 @crc32(i64 noundef %580, ptr noundef %581, i32 noundef 2)
  %583 = load ptr, ptr %6, align 8
  %584 = getelementptr inbounds nuw %struct.inflate_state, ptr %583, i32 0, i32 7
  store i64 %582, ptr %584, align 8
  br label %585

585:                                              ; preds = %570
  br label %586

586:                                              ; preds = %585, %563, %557
  br label %587

587:                                              ; preds = %586
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %588

588:                                              ; preds = %587
  br label %600

589:                                              ; preds = %509
  %590 = load ptr, ptr %6, align 8
  %591 = getelementptr inbounds nuw %struct.inflate_state, ptr %590, i32 0, i32 9
  %592 = load ptr, ptr %591, align 8
  %593 = icmp ne ptr %592, null
  br i1 %593, label %594, label %599

594:                                              ; preds = %589
  %595 = load ptr, ptr %6, align 8
  %596 = getelementptr inbounds nuw %struct.inflate_state, ptr %595, i32 0, i32 9
  %597 = load ptr, ptr %596, align 8
  %598 = getelementptr inbounds nuw %struct.gz_header_s, ptr %597, i32 0, i32 4
  store ptr null, ptr %598, align 8
  br label %599

599:                                              ; preds = %594, %589
  br label %600

600:                                              ; preds = %599, %588
  %601 = load ptr, ptr %6, align 8
  %602 = getelementptr inbounds nuw %struct.inflate_state, ptr %601, i32 0, i32 1
  store i32 16185, ptr %602, align 8
  br label %603

603:                                              ; preds = %75, %600
  %604 = load ptr, ptr %6, align 8
  %605 = getelementptr inbounds nuw %struct.inflate_state, ptr %604, i32 0, i32 5
  %606 = load i32, ptr %605, align 8
  %607 = and i32 %606, 1024
  %608 = icmp ne i32 %607, 0
  br i1 %608, label %609, label %722

609:                                              ; preds = %603
  %610 = load ptr, ptr %6, align 8
  %611 = getelementptr inbounds nuw %struct.inflate_state, ptr %610, i32 0, i32 17
  %612 = load i32, ptr %611, align 4
  store i32 %612, ptr %15, align 4
  %613 = load i32, ptr %15, align 4
  %614 = load i32, ptr %9, align 4
  %615 = icmp ugt i32 %613, %614
  br i1 %615, label %616, label %618

616:                                              ; preds = %609
  %617 = load i32, ptr %9, align 4
  store i32 %617, ptr %15, align 4
  br label %618

618:                                              ; preds = %616, %609
  %619 = load i32, ptr %15, align 4
  %620 = icmp ne i32 %619, 0
  br i1 %620, label %621, label %715

621:                                              ; preds = %618
  %622 = load ptr, ptr %6, align 8
  %623 = getelementptr inbounds nuw %struct.inflate_state, ptr %622, i32 0, i32 9
  %624 = load ptr, ptr %623, align 8
  %625 = icmp ne ptr %624, null
  br i1 %625, label %626, label %681

626:                                              ; preds = %621
  %627 = load ptr, ptr %6, align 8
  %628 = getelementptr inbounds nuw %struct.inflate_state, ptr %627, i32 0, i32 9
  %629 = load ptr, ptr %628, align 8
  %630 = getelementptr inbounds nuw %struct.gz_header_s, ptr %629, i32 0, i32 4
  %631 = load ptr, ptr %630, align 8
  %632 = icmp ne ptr %631, null
  br i1 %632, label %633, label %681

633:                                              ; preds = %626
  %634 = load ptr, ptr %6, align 8
  %635 = getelementptr inbounds nuw %struct.inflate_state, ptr %634, i32 0, i32 9
  %636 = load ptr, ptr %635, align 8
  %637 = getelementptr inbounds nuw %struct.gz_header_s, ptr %636, i32 0, i32 5
  %638 = load i32, ptr %637, align 8
  %639 = load ptr, ptr %6, align 8
  %640 = getelementptr inbounds nuw %struct.inflate_state, ptr %639, i32 0, i32 17
  %641 = load i32, ptr %640, align 4
  %642 = sub i32 %638, %641
  store i32 %642, ptr %19, align 4
  %643 = load ptr, ptr %6, align 8
  %644 = getelementptr inbounds nuw %struct.inflate_state, ptr %643, i32 0, i32 9
  %645 = load ptr, ptr %644, align 8
  %646 = getelementptr inbounds nuw %struct.gz_header_s, ptr %645, i32 0, i32 6
  %647 = load i32, ptr %646, align 4
  %648 = icmp ult i32 %642, %647
  br i1 %648, label %649, label %681

649:                                              ; preds = %633
  %650 = load ptr, ptr %6, align 8
  %651 = getelementptr inbounds nuw %struct.inflate_state, ptr %650, i32 0, i32 9
  %652 = load ptr, ptr %651, align 8
  %653 = getelementptr inbounds nuw %struct.gz_header_s, ptr %652, i32 0, i32 4
  %654 = load ptr, ptr %653, align 8
  %655 = load i32, ptr %19, align 4
  %656 = zext i32 %655 to i64
  %657 = getelementptr inbounds nuw i8, ptr %654, i64 %656
  %658 = load ptr, ptr %7, align 8
  %659 = load i32, ptr %19, align 4
  %660 = load i32, ptr %15, align 4
  %661 = add i32 %659, %660
  %662 = load ptr, ptr %6, align 8
  %663 = getelementptr inbounds nuw %struct.inflate_state, ptr %662, i32 0, i32 9
  %664 = load ptr, ptr %663, align 8
  %665 = getelementptr inbounds nuw %struct.gz_header_s, ptr %664, i32 0, i32 6
  %666 = load i32, ptr %665, align 4
  %667 = icmp ugt i32 %661, %666
  br i1 %667, label %668, label %676

668:                                              ; preds = %649
  %669 = load ptr, ptr %6, align 8
  %670 = getelementptr inbounds nuw %struct.inflate_state, ptr %669, i32 0, i32 9
  %671 = load ptr, ptr %670, align 8
  %672 = getelementptr inbounds nuw %struct.gz_header_s, ptr %671, i32 0, i32 6
  %673 = load i32, ptr %672, align 4
  %674 = load i32, ptr %19, align 4
  %675 = sub i32 %673, %674
  br label %678

676:                                              ; preds = %649
  %677 = load i32, ptr %15, align 4
  br label %678

678:                                              ; preds = %676, %668
  %679 = phi i32 [ %675, %668 ], [ %677, %676 ]
  %680 = zext i32 %679 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %657, ptr align 1 %658, i64 %680, i1 false)
  br label %681

681:                                              ; preds = %678, %633, %626, %621
  %682 = load ptr, ptr %6, align 8
  %683 = getelementptr inbounds nuw %struct.inflate_state, ptr %682, i32 0, i32 5
  %684 = load i32, ptr %683, align 8
  %685 = and i32 %684, 512
  %686 = icmp ne i32 %685, 0
  br i1 %686, label %687, label %702

687:                                              ; preds = %681
  %688 = load ptr, ptr %6, align 8
  %689 = getelementptr inbounds nuw %struct.inflate_state, ptr %688, i32 0, i32 3
  %690 = load i32, ptr %689, align 8
  %691 = and i32 %690, 4
  %692 = icmp ne i32 %691, 0
  br i1 %692, label %693, label %702

693:                                              ; preds = %687
  %694 = load ptr, ptr %6, align 8
  %695 = getelementptr inbounds nuw %struct.inflate_state, ptr %694, i32 0, i32 7
  %696 = load i64, ptr %695, align 8
  %697 = load ptr, ptr %7, align 8
  %698 = load i32, ptr %15, align 4
  %699 = call i64 @crc32(i64 noundef %696, ptr noundef %697, i32 noundef %698)
  %700 = load ptr, ptr %6, align 8
  %701 = getelementptr inbounds nuw %struct.inflate_state, ptr %700, i32 0, i32 7
  store i64 %699, ptr %701, align 8
  br label %702

702:                                              ; preds = %693, %687, %681
  %703 = load i32, ptr %15, align 4
  %704 = load i32, ptr %9, align 4
  %705 = sub i32 %704, %703
  store i32 %705, ptr %9, align 4
  %706 = load i32, ptr %15, align 4
  %707 = load ptr, ptr %7, align 8
  %708 = zext i32 %706 to i64
  %709 = getelementptr inbounds nuw i8, ptr %707, i64 %708
  store ptr %709, ptr %7, align 8
  %710 = load i32, ptr %15, align 4
  %711 = load ptr, ptr %6, align 8
  %712 = getelementptr inbounds nuw %struct.inflate_state, ptr %711, i32 0, i32 17
  %713 = load i32, ptr %712, align 4
  %714 = sub i32 %713, %710
  store i32 %714, ptr %712, align 4
  br label %715

715:                                              ; preds = %702, %618
  %716 = load ptr, ptr %6, align 8
  %717 = getelementptr inbounds nuw %struct.inflate_state, ptr %716, i32 0, i32 17
  %718 = load i32, ptr %717, align 4
  %719 = icmp ne i32 %718, 0
  br i1 %719, label %720, label %721

720:                                              ; preds = %715
  br label %2840

721:                                              ; preds = %715
  br label %722

722:                                              ; preds = %721, %603
  %723 = load ptr, ptr %6, align 8
  %724 = getelementptr inbounds nuw %struct.inflate_state, ptr %723, i32 0, i32 17
  store i32 0, ptr %724, align 4
  %725 = load ptr, ptr %6, align 8
  %726 = getelementptr inbounds nuw %struct.inflate_state, ptr %725, i32 0, i32 1
  store i32 16186, ptr %726, align 8
  br label %727

727:                                              ; preds = %75, %722
  %728 = load ptr, ptr %6, align 8
  %729 = getelementptr inbounds nuw %struct.inflate_state, ptr %728, i32 0, i32 5
  %730 = load i32, ptr %729, align 8
  %731 = and i32 %730, 2048
  %732 = icmp ne i32 %731, 0
  br i1 %732, label %733, label %824

733:                                              ; preds = %727
  %734 = load i32, ptr %9, align 4
  %735 = icmp eq i32 %734, 0
  br i1 %735, label %736, label %737

736:                                              ; preds = %733
  br label %2840

737:                                              ; preds = %733
  store i32 0, ptr %15, align 4
  br label %738

738:                                              ; preds = %789, %737
  %739 = load ptr, ptr %7, align 8
  %740 = load i32, ptr %15, align 4
  %741 = add i32 %740, 1
  store i32 %741, ptr %15, align 4
  %742 = zext i32 %740 to i64
  %743 = getelementptr inbounds nuw i8, ptr %739, i64 %742
  %744 = load i8, ptr %743, align 1
  %745 = zext i8 %744 to i32
  store i32 %745, ptr %19, align 4
  %746 = load ptr, ptr %6, align 8
  %747 = getelementptr inbounds nuw %struct.inflate_state, ptr %746, i32 0, i32 9
  %748 = load ptr, ptr %747, align 8
  %749 = icmp ne ptr %748, null
  br i1 %749, label %750, label %781

750:                                              ; preds = %738
  %751 = load ptr, ptr %6, align 8
  %752 = getelementptr inbounds nuw %struct.inflate_state, ptr %751, i32 0, i32 9
  %753 = load ptr, ptr %752, align 8
  %754 = getelementptr inbounds nuw %struct.gz_header_s, ptr %753, i32 0, i32 7
  %755 = load ptr, ptr %754, align 8
  %756 = icmp ne ptr %755, null
  br i1 %756, label %757, label %781

757:                                              ; preds = %750
  %758 = load ptr, ptr %6, align 8
  %759 = getelementptr inbounds nuw %struct.inflate_state, ptr %758, i32 0, i32 17
  %760 = load i32, ptr %759, align 4
  %761 = load ptr, ptr %6, align 8
  %762 = getelementptr inbounds nuw %struct.inflate_state, ptr %761, i32 0, i32 9
  %763 = load ptr, ptr %762, align 8
  %764 = getelementptr inbounds nuw %struct.gz_header_s, ptr %763, i32 0, i32 8
  %765 = load i32, ptr %764, align 8
  %766 = icmp ult i32 %760, %765
  br i1 %766, label %767, label %781

767:                                              ; preds = %757
  %768 = load i32, ptr %19, align 4
  %769 = trunc i32 %768 to i8
  %770 = load ptr, ptr %6, align 8
  %771 = getelementptr inbounds nuw %struct.inflate_state, ptr %770, i32 0, i32 9
  %772 = load ptr, ptr %771, align 8
  %773 = getelementptr inbounds nuw %struct.gz_header_s, ptr %772, i32 0, i32 7
  %774 = load ptr, ptr %773, align 8
  %775 = load ptr, ptr %6, align 8
  %776 = getelementptr inbounds nuw %struct.inflate_state, ptr %775, i32 0, i32 17
  %777 = load i32, ptr %776, align 4
  %778 = add i32 %777, 1
  store i32 %778, ptr %776, align 4
  %779 = zext i32 %777 to i64
  %780 = getelementptr inbounds nuw i8, ptr %774, i64 %779
  store i8 %769, ptr %780, align 1
  br label %781

781:                                              ; preds = %767, %757, %750, %738
  br label %782

782:                                              ; preds = %781
  %783 = load i32, ptr %19, align 4
  %784 = icmp ne i32 %783, 0
  br i1 %784, label %785, label %789

785:                                              ; preds = %782
  %786 = load i32, ptr %15, align 4
  %787 = load i32, ptr %9, align 4
  %788 = icmp ult i32 %786, %787
  br label %789

789:                                              ; preds = %785, %782
  %790 = phi i1 [ false, %782 ], [ %788, %785 ]
  br i1 %790, label %738, label %791, !llvm.loop !11

791:                                              ; preds = %789
  %792 = load ptr, ptr %6, align 8
  %793 = getelementptr inbounds nuw %struct.inflate_state, ptr %792, i32 0, i32 5
  %794 = load i32, ptr %793, align 8
  %795 = and i32 %794, 512
  %796 = icmp ne i32 %795, 0
  br i1 %796, label %797, label %812

797:                                              ; preds = %791
  %798 = load ptr, ptr %6, align 8
  %799 = getelementptr inbounds nuw %struct.inflate_state, ptr %798, i32 0, i32 3
  %800 = load i32, ptr %799, align 8
  %801 = and i32 %800, 4
  %802 = icmp ne i32 %801, 0
  br i1 %802, label %803, label %812

803:                                              ; preds = %797
  %804 = load ptr, ptr %6, align 8
  %805 = getelementptr inbounds nuw %struct.inflate_state, ptr %804, i32 0, i32 7
  %806 = load i64, ptr %805, align 8
  %807 = load ptr, ptr %7, align 8
  %808 = load i32, ptr %15, align 4
  %809 = call i64 @crc32(i64 noundef %806, ptr noundef %807, i32 noundef %808)
  %810 = load ptr, ptr %6, align 8
  %811 = getelementptr inbounds nuw %struct.inflate_state, ptr %810, i32 0, i32 7
  store i64 %809, ptr %811, align 8
  br label %812

812:                                              ; preds = %803, %797, %791
  %813 = load i32, ptr %15, align 4
  %814 = load i32, ptr %9, align 4
  %815 = sub i32 %814, %813
  store i32 %815, ptr %9, align 4
  %816 = load i32, ptr %15, align 4
  %817 = load ptr, ptr %7, align 8
  %818 = zext i32 %816 to i64
  %819 = getelementptr inbounds nuw i8, ptr %817, i64 %818
  store ptr %819, ptr %7, align 8
  %820 = load i32, ptr %19, align 4
  %821 = icmp ne i32 %820, 0
  br i1 %821, label %822, label %823

822:                                              ; preds = %812
  br label %2840

823:                                              ; preds = %812
  br label %835

824:                                              ; preds = %727
  %825 = load ptr, ptr %6, align 8
  %826 = getelementptr inbounds nuw %struct.inflate_state, ptr %825, i32 0, i32 9
  %827 = load ptr, ptr %826, align 8
  %828 = icmp ne ptr %827, null
  br i1 %828, label %829, label %834

829:                                              ; preds = %824
  %830 = load ptr, ptr %6, align 8
  %831 = getelementptr inbounds nuw %struct.inflate_state, ptr %830, i32 0, i32 9
  %832 = load ptr, ptr %831, align 8
  %833 = getelementptr inbounds nuw %struct.gz_header_s, ptr %832, i32 0, i32 7
  store ptr null, ptr %833, align 8
  br label %834

834:                                              ; preds = %829, %824
  br label %835

835:                                              ; preds = %834, %823
  %836 = load ptr, ptr %6, align 8
  %837 = getelementptr inbounds nuw %struct.inflate_state, ptr %836, i32 0, i32 17
  store i32 0, ptr %837, align 4
  %838 = load ptr, ptr %6, align 8
  %839 = getelementptr inbounds nuw %struct.inflate_state, ptr %838, i32 0, i32 1
  store i32 16187, ptr %839, align 8
  br label %840

840:                                              ; preds = %75, %835
  %841 = load ptr, ptr %6, align 8
  %842 = getelementptr inbounds nuw %struct.inflate_state, ptr %841, i32 0, i32 5
  %843 = load i32, ptr %842, align 8
  %844 = and i32 %843, 4096
  %845 = icmp ne i32 %844, 0
  br i1 %845, label %846, label %937

846:                                              ; preds = %840
  %847 = load i32, ptr %9, align 4
  %848 = icmp eq i32 %847, 0
  br i1 %848, label %849, label %850

849:                                              ; preds = %846
  br label %2840

850:                                              ; preds = %846
  store i32 0, ptr %15, align 4
  br label %851

851:                                              ; preds = %902, %850
  %852 = load ptr, ptr %7, align 8
  %853 = load i32, ptr %15, align 4
  %854 = add i32 %853, 1
  store i32 %854, ptr %15, align 4
  %855 = zext i32 %853 to i64
  %856 = getelementptr inbounds nuw i8, ptr %852, i64 %855
  %857 = load i8, ptr %856, align 1
  %858 = zext i8 %857 to i32
  store i32 %858, ptr %19, align 4
  %859 = load ptr, ptr %6, align 8
  %860 = getelementptr inbounds nuw %struct.inflate_state, ptr %859, i32 0, i32 9
  %861 = load ptr, ptr %860, align 8
  %862 = icmp ne ptr %861, null
  br i1 %862, label %863, label %894

863:                                              ; preds = %851
  %864 = load ptr, ptr %6, align 8
  %865 = getelementptr inbounds nuw %struct.inflate_state, ptr %864, i32 0, i32 9
  %866 = load ptr, ptr %865, align 8
  %867 = getelementptr inbounds nuw %struct.gz_header_s, ptr %866, i32 0, i32 9
  %868 = load ptr, ptr %867, align 8
  %869 = icmp ne ptr %868, null
  br i1 %869, label %870, label %894

870:                                              ; preds = %863
  %871 = load ptr, ptr %6, align 8
  %872 = getelementptr inbounds nuw %struct.inflate_state, ptr %871, i32 0, i32 17
  %873 = load i32, ptr %872, align 4
  %874 = load ptr, ptr %6, align 8
  %875 = getelementptr inbounds nuw %struct.inflate_state, ptr %874, i32 0, i32 9
  %876 = load ptr, ptr %875, align 8
  %877 = getelementptr inbounds nuw %struct.gz_header_s, ptr %876, i32 0, i32 10
  %878 = load i32, ptr %877, align 8
  %879 = icmp ult i32 %873, %878
  br i1 %879, label %880, label %894

880:                                              ; preds = %870
  %881 = load i32, ptr %19, align 4
  %882 = trunc i32 %881 to i8
  %883 = load ptr, ptr %6, align 8
  %884 = getelementptr inbounds nuw %struct.inflate_state, ptr %883, i32 0, i32 9
  %885 = load ptr, ptr %884, align 8
  %886 = getelementptr inbounds nuw %struct.gz_header_s, ptr %885, i32 0, i32 9
  %887 = load ptr, ptr %886, align 8
  %888 = load ptr, ptr %6, align 8
  %889 = getelementptr inbounds nuw %struct.inflate_state, ptr %888, i32 0, i32 17
  %890 = load i32, ptr %889, align 4
  %891 = add i32 %890, 1
  store i32 %891, ptr %889, align 4
  %892 = zext i32 %890 to i64
  %893 = getelementptr inbounds nuw i8, ptr %887, i64 %892
  store i8 %882, ptr %893, align 1
  br label %894

894:                                              ; preds = %880, %870, %863, %851
  br label %895

895:                                              ; preds = %894
  %896 = load i32, ptr %19, align 4
  %897 = icmp ne i32 %896, 0
  br i1 %897, label %898, label %902

898:                                              ; preds = %895
  %899 = load i32, ptr %15, align 4
  %900 = load i32, ptr %9, align 4
  %901 = icmp ult i32 %899, %900
  br label %902

902:                                              ; preds = %898, %895
  %903 = phi i1 [ false, %895 ], [ %901, %898 ]
  br i1 %903, label %851, label %904, !llvm.loop !12

904:                                              ; preds = %902
  %905 = load ptr, ptr %6, align 8
  %906 = getelementptr inbounds nuw %struct.inflate_state, ptr %905, i32 0, i32 5
  %907 = load i32, ptr %906, align 8
  %908 = and i32 %907, 512
  %909 = icmp ne i32 %908, 0
  br i1 %909, label %910, label %925

910:                                              ; preds = %904
  %911 = load ptr, ptr %6, align 8
  %912 = getelementptr inbounds nuw %struct.inflate_state, ptr %911, i32 0, i32 3
  %913 = load i32, ptr %912, align 8
  %914 = and i32 %913, 4
  %915 = icmp ne i32 %914, 0
  br i1 %915, label %916, label %925

916:                                              ; preds = %910
  %917 = load ptr, ptr %6, align 8
  %918 = getelementptr inbounds nuw %struct.inflate_state, ptr %917, i32 0, i32 7
  %919 = load i64, ptr %918, align 8
  %920 = load ptr, ptr %7, align 8
  %921 = load i32, ptr %15, align 4
  %922 = call i64 @crc32(i64 noundef %919, ptr noundef %920, i32 noundef %921)
  %923 = load ptr, ptr %6, align 8
  %924 = getelementptr inbounds nuw %struct.inflate_state, ptr %923, i32 0, i32 7
  store i64 %922, ptr %924, align 8
  br label %925

925:                                              ; preds = %916, %910, %904
  %926 = load i32, ptr %15, align 4
  %927 = load i32, ptr %9, align 4
  %928 = sub i32 %927, %926
  store i32 %928, ptr %9, align 4
  %929 = load i32, ptr %15, align 4
  %930 = load ptr, ptr %7, align 8
  %931 = zext i32 %929 to i64
  %932 = getelementptr inbounds nuw i8, ptr %930, i64 %931
  store ptr %932, ptr %7, align 8
  %933 = load i32, ptr %19, align 4
  %934 = icmp ne i32 %933, 0
  br i1 %934, label %935, label %936

935:                                              ; preds = %925
  br label %2840

936:                                              ; preds = %925
  br label %948

937:                                              ; preds = %840
  %938 = load ptr, ptr %6, align 8
  %939 = getelementptr inbounds nuw %struct.inflate_state, ptr %938, i32 0, i32 9
  %940 = load ptr, ptr %939, align 8
  %941 = icmp ne ptr %940, null
  br i1 %941, label %942, label %947

942:                                              ; preds = %937
  %943 = load ptr, ptr %6, align 8
  %944 = getelementptr inbounds nuw %struct.inflate_state, ptr %943, i32 0, i32 9
  %945 = load ptr, ptr %944, align 8
  %946 = getelementptr inbounds nuw %struct.gz_header_s, ptr %945, i32 0, i32 9
  store ptr null, ptr %946, align 8
  br label %947

947:                                              ; preds = %942, %937
  br label %948

948:                                              ; preds = %947, %936
  %949 = load ptr, ptr %6, align 8
  %950 = getelementptr inbounds nuw %struct.inflate_state, ptr %949, i32 0, i32 1
  store i32 16188, ptr %950, align 8
  br label %951

951:                                              ; preds = %75, %948
  %952 = load ptr, ptr %6, align 8
  %953 = getelementptr inbounds nuw %struct.inflate_state, ptr %952, i32 0, i32 5
  %954 = load i32, ptr %953, align 8
  %955 = and i32 %954, 512
  %956 = icmp ne i32 %955, 0
  br i1 %956, label %957, label %1004

957:                                              ; preds = %951
  br label %958

958:                                              ; preds = %957
  br label %959

959:                                              ; preds = %981, %958
  %960 = load i32, ptr %12, align 4
  %961 = icmp ult i32 %960, 16
  br i1 %961, label %962, label %982

962:                                              ; preds = %959
  br label %963

963:                                              ; preds = %962
  %964 = load i32, ptr %9, align 4
  %965 = icmp eq i32 %964, 0
  br i1 %965, label %966, label %967

966:                                              ; preds = %963
  br label %2840

967:                                              ; preds = %963
  %968 = load i32, ptr %9, align 4
  %969 = add i32 %968, -1
  store i32 %969, ptr %9, align 4
  %970 = load ptr, ptr %7, align 8
  %971 = getelementptr inbounds nuw i8, ptr %970, i32 1
  store ptr %971, ptr %7, align 8
  %972 = load i8, ptr %970, align 1
  %973 = zext i8 %972 to i64
  %974 = load i32, ptr %12, align 4
  %975 = zext i32 %974 to i64
  %976 = shl i64 %973, %975
  %977 = load i64, ptr %11, align 8
  %978 = add i64 %977, %976
  store i64 %978, ptr %11, align 8
  %979 = load i32, ptr %12, align 4
  %980 = add i32 %979, 8
  store i32 %980, ptr %12, align 4
  br label %981

981:                                              ; preds = %967
  br label %959, !llvm.loop !13

982:                                              ; preds = %959
  br label %983

983:                                              ; preds = %982
  %984 = load ptr, ptr %6, align 8
  %985 = getelementptr inbounds nuw %struct.inflate_state, ptr %984, i32 0, i32 3
  %986 = load i32, ptr %985, align 8
  %987 = and i32 %986, 4
  %988 = icmp ne i32 %987, 0
  br i1 %988, label %989, label %1001

989:                                              ; preds = %983
  %990 = load i64, ptr %11, align 8
  %991 = load ptr, ptr %6, align 8
  %992 = getelementptr inbounds nuw %struct.inflate_state, ptr %991, i32 0, i32 7
  %993 = load i64, ptr %992, align 8
  %994 = and i64 %993, 65535
  %995 = icmp ne i64 %990, %994
  br i1 %995, label %996, label %1001

996:                                              ; preds = %989
  %997 = load ptr, ptr %4, align 8
  %998 = getelementptr inbounds nuw %struct.z_stream_s, ptr %997, i32 0, i32 6
  store ptr @.str.5, ptr %998, align 8
  %999 = load ptr, ptr %6, align 8
  %1000 = getelementptr inbounds nuw %struct.inflate_state, ptr %999, i32 0, i32 1
  store i32 16209, ptr %1000, align 8
  br label %2839

1001:                                             ; preds = %989, %983
  br label %1002

1002:                                             ; preds = %1001
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %1003

1003:                                             ; preds = %1002
  br label %1004

1004:                                             ; preds = %1003, %951
  %1005 = load ptr, ptr %6, align 8
  %1006 = getelementptr inbounds nuw %struct.inflate_state, ptr %1005, i32 0, i32 9
  %1007 = load ptr, ptr %1006, align 8
  %1008 = icmp ne ptr %1007, null
  br i1 %1008, label %1009, label %1023

1009:                                             ; preds = %1004
  %1010 = load ptr, ptr %6, align 8
  %1011 = getelementptr inbounds nuw %struct.inflate_state, ptr %1010, i32 0, i32 5
  %1012 = load i32, ptr %1011, align 8
  %1013 = ashr i32 %1012, 9
  %1014 = and i32 %1013, 1
  %1015 = load ptr, ptr %6, align 8
  %1016 = getelementptr inbounds nuw %struct.inflate_state, ptr %1015, i32 0, i32 9
  %1017 = load ptr, ptr %1016, align 8
  %1018 = getelementptr inbounds nuw %struct.gz_header_s, ptr %1017, i32 0, i32 11
  store i32 %1014, ptr %1018, align 4
  %1019 = load ptr, ptr %6, align 8
  %1020 = getelementptr inbounds nuw %struct.inflate_state, ptr %1019, i32 0, i32 9
  %1021 = load ptr, ptr %1020, align 8
  %1022 = getelementptr inbounds nuw %struct.gz_header_s, ptr %1021, i32 0, i32 12
  store i32 1, ptr %1022, align 8
  br label %1023

1023:                                             ; preds = %1009, %1004
  %1024 = call i64 @crc32(i64 noundef 0, ptr noundef null, i32 noundef 0)
  %1025 = load ptr, ptr %6, align 8
  %1026 = getelementptr inbounds nuw %struct.inflate_state, ptr %1025, i32 0, i32 7
  store i64 %1024, ptr %1026, align 8
  %1027 = load ptr, ptr %4, align 8
  %1028 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1027, i32 0, i32 12
  store i64 %1024, ptr %1028, align 8
  %1029 = load ptr, ptr %6, align 8
  %1030 = getelementptr inbounds nuw %struct.inflate_state, ptr %1029, i32 0, i32 1
  store i32 16191, ptr %1030, align 8
  br label %2839

1031:                                             ; preds = %75
  br label %1032

1032:                                             ; preds = %1031
  br label %1033

1033:                                             ; preds = %1055, %1032
  %1034 = load i32, ptr %12, align 4
  %1035 = icmp ult i32 %1034, 32
  br i1 %1035, label %1036, label %1056

1036:                                             ; preds = %1033
  br label %1037

1037:                                             ; preds = %1036
  %1038 = load i32, ptr %9, align 4
  %1039 = icmp eq i32 %1038, 0
  br i1 %1039, label %1040, label %1041

1040:                                             ; preds = %1037
  br label %2840

1041:                                             ; preds = %1037
  %1042 = load i32, ptr %9, align 4
  %1043 = add i32 %1042, -1
  store i32 %1043, ptr %9, align 4
  %1044 = load ptr, ptr %7, align 8
  %1045 = getelementptr inbounds nuw i8, ptr %1044, i32 1
  store ptr %1045, ptr %7, align 8
  %1046 = load i8, ptr %1044, align 1
  %1047 = zext i8 %1046 to i64
  %1048 = load i32, ptr %12, align 4
  %1049 = zext i32 %1048 to i64
  %1050 = shl i64 %1047, %1049
  %1051 = load i64, ptr %11, align 8
  %1052 = add i64 %1051, %1050
  store i64 %1052, ptr %11, align 8
  %1053 = load i32, ptr %12, align 4
  %1054 = add i32 %1053, 8
  store i32 %1054, ptr %12, align 4
  br label %1055

1055:                                             ; preds = %1041
  br label %1033, !llvm.loop !14

1056:                                             ; preds = %1033
  br label %1057

1057:                                             ; preds = %1056
  %1058 = load i64, ptr %11, align 8
  %1059 = lshr i64 %1058, 24
  %1060 = and i64 %1059, 255
  %1061 = load i64, ptr %11, align 8
  %1062 = lshr i64 %1061, 8
  %1063 = and i64 %1062, 65280
  %1064 = add i64 %1060, %1063
  %1065 = load i64, ptr %11, align 8
  %1066 = and i64 %1065, 65280
  %1067 = shl i64 %1066, 8
  %1068 = add i64 %1064, %1067
  %1069 = load i64, ptr %11, align 8
  %1070 = and i64 %1069, 255
  %1071 = shl i64 %1070, 24
  %1072 = add i64 %1068, %1071
  %1073 = load ptr, ptr %6, align 8
  %1074 = getelementptr inbounds nuw %struct.inflate_state, ptr %1073, i32 0, i32 7
  store i64 %1072, ptr %1074, align 8
  %1075 = load ptr, ptr %4, align 8
  %1076 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1075, i32 0, i32 12
  store i64 %1072, ptr %1076, align 8
  br label %1077

1077:                                             ; preds = %1057
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %1078

1078:                                             ; preds = %1077
  %1079 = load ptr, ptr %6, align 8
  %1080 = getelementptr inbounds nuw %struct.inflate_state, ptr %1079, i32 0, i32 1
  store i32 16190, ptr %1080, align 8
  br label %1081

1081:                                             ; preds = %75, %1078
  %1082 = load ptr, ptr %6, align 8
  %1083 = getelementptr inbounds nuw %struct.inflate_state, ptr %1082, i32 0, i32 4
  %1084 = load i32, ptr %1083, align 4
  %1085 = icmp eq i32 %1084, 0
  br i1 %1085, label %1086, label %1107

1086:                                             ; preds = %1081
  br label %1087

1087:                                             ; preds = %1086
  %1088 = load ptr, ptr %8, align 8
  %1089 = load ptr, ptr %4, align 8
  %1090 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1089, i32 0, i32 3
  store ptr %1088, ptr %1090, align 8
  %1091 = load i32, ptr %10, align 4
  %1092 = load ptr, ptr %4, align 8
  %1093 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1092, i32 0, i32 4
  store i32 %1091, ptr %1093, align 8
  %1094 = load ptr, ptr %7, align 8
  %1095 = load ptr, ptr %4, align 8
  %1096 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1095, i32 0, i32 0
  store ptr %1094, ptr %1096, align 8
  %1097 = load i32, ptr %9, align 4
  %1098 = load ptr, ptr %4, align 8
  %1099 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1098, i32 0, i32 1
  store i32 %1097, ptr %1099, align 8
  %1100 = load i64, ptr %11, align 8
  %1101 = load ptr, ptr %6, align 8
  %1102 = getelementptr inbounds nuw %struct.inflate_state, ptr %1101, i32 0, i32 15
  store i64 %1100, ptr %1102, align 8
  %1103 = load i32, ptr %12, align 4
  %1104 = load ptr, ptr %6, align 8
  %1105 = getelementptr inbounds nuw %struct.inflate_state, ptr %1104, i32 0, i32 16
  store i32 %1103, ptr %1105, align 8
  br label %1106

1106:                                             ; preds = %1087
  store i32 2, ptr %3, align 4
  br label %3022

1107:                                             ; preds = %1081
  %1108 = call i64 @adler32(i64 noundef 0, ptr noundef null, i32 noundef 0)
  %1109 = load ptr, ptr %6, align 8
  %1110 = getelementptr inbounds nuw %struct.inflate_state, ptr %1109, i32 0, i32 7
  store i64 %1108, ptr %1110, align 8
  %1111 = load ptr, ptr %4, align 8
  %1112 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1111, i32 0, i32 12
  store i64 %1108, ptr %1112, align 8
  %1113 = load ptr, ptr %6, align 8
  %1114 = getelementptr inbounds nuw %struct.inflate_state, ptr %1113, i32 0, i32 1
  store i32 16191, ptr %1114, align 8
  br label %1115

1115:                                             ; preds = %75, %1107
  %1116 = load i32, ptr %5, align 4
  %1117 = icmp eq i32 %1116, 5
  br i1 %1117, label %1121, label %1118

1118:                                             ; preds = %1115
  %1119 = load i32, ptr %5, align 4
  %1120 = icmp eq i32 %1119, 6
  br i1 %1120, label %1121, label %1122

1121:                                             ; preds = %1118, %1115
  br label %2840

1122:                                             ; preds = %1118
  br label %1123

1123:                                             ; preds = %75, %1122
  %1124 = load ptr, ptr %6, align 8
  %1125 = getelementptr inbounds nuw %struct.inflate_state, ptr %1124, i32 0, i32 2
  %1126 = load i32, ptr %1125, align 4
  %1127 = icmp ne i32 %1126, 0
  br i1 %1127, label %1128, label %1142

1128:                                             ; preds = %1123
  br label %1129

1129:                                             ; preds = %1128
  %1130 = load i32, ptr %12, align 4
  %1131 = and i32 %1130, 7
  %1132 = load i64, ptr %11, align 8
  %1133 = zext i32 %1131 to i64
  %1134 = lshr i64 %1132, %1133
  store i64 %1134, ptr %11, align 8
  %1135 = load i32, ptr %12, align 4
  %1136 = and i32 %1135, 7
  %1137 = load i32, ptr %12, align 4
  %1138 = sub i32 %1137, %1136
  store i32 %1138, ptr %12, align 4
  br label %1139

1139:                                             ; preds = %1129
  %1140 = load ptr, ptr %6, align 8
  %1141 = getelementptr inbounds nuw %struct.inflate_state, ptr %1140, i32 0, i32 1
  store i32 16206, ptr %1141, align 8
  br label %2839

1142:                                             ; preds = %1123
  br label %1143

1143:                                             ; preds = %1142
  br label %1144

1144:                                             ; preds = %1166, %1143
  %1145 = load i32, ptr %12, align 4
  %1146 = icmp ult i32 %1145, 3
  br i1 %1146, label %1147, label %1167

1147:                                             ; preds = %1144
  br label %1148

1148:                                             ; preds = %1147
  %1149 = load i32, ptr %9, align 4
  %1150 = icmp eq i32 %1149, 0
  br i1 %1150, label %1151, label %1152

1151:                                             ; preds = %1148
  br label %2840

1152:                                             ; preds = %1148
  %1153 = load i32, ptr %9, align 4
  %1154 = add i32 %1153, -1
  store i32 %1154, ptr %9, align 4
  %1155 = load ptr, ptr %7, align 8
  %1156 = getelementptr inbounds nuw i8, ptr %1155, i32 1
  store ptr %1156, ptr %7, align 8
  %1157 = load i8, ptr %1155, align 1
  %1158 = zext i8 %1157 to i64
  %1159 = load i32, ptr %12, align 4
  %1160 = zext i32 %1159 to i64
  %1161 = shl i64 %1158, %1160
  %1162 = load i64, ptr %11, align 8
  %1163 = add i64 %1162, %1161
  store i64 %1163, ptr %11, align 8
  %1164 = load i32, ptr %12, align 4
  %1165 = add i32 %1164, 8
  store i32 %1165, ptr %12, align 4
  br label %1166

1166:                                             ; preds = %1152
  br label %1144, !llvm.loop !15

1167:                                             ; preds = %1144
  br label %1168

1168:                                             ; preds = %1167
  %1169 = load i64, ptr %11, align 8
  %1170 = trunc i64 %1169 to i32
  %1171 = and i32 %1170, 1
  %1172 = load ptr, ptr %6, align 8
  %1173 = getelementptr inbounds nuw %struct.inflate_state, ptr %1172, i32 0, i32 2
  store i32 %1171, ptr %1173, align 4
  br label %1174

1174:                                             ; preds = %1168
  %1175 = load i64, ptr %11, align 8
  %1176 = lshr i64 %1175, 1
  store i64 %1176, ptr %11, align 8
  %1177 = load i32, ptr %12, align 4
  %1178 = sub i32 %1177, 1
  store i32 %1178, ptr %12, align 4
  br label %1179

1179:                                             ; preds = %1174
  %1180 = load i64, ptr %11, align 8
  %1181 = trunc i64 %1180 to i32
  %1182 = and i32 %1181, 3
  switch i32 %1182, label %1208 [
    i32 0, label %1183
    i32 1, label %1186
    i32 2, label %1200
    i32 3, label %1203
  ]

1183:                                             ; preds = %1179
  %1184 = load ptr, ptr %6, align 8
  %1185 = getelementptr inbounds nuw %struct.inflate_state, ptr %1184, i32 0, i32 1
  store i32 16193, ptr %1185, align 8
  br label %1208

1186:                                             ; preds = %1179
  %1187 = load ptr, ptr %6, align 8
  call void @fixedtables(ptr noundef %1187)
  %1188 = load ptr, ptr %6, align 8
  %1189 = getelementptr inbounds nuw %struct.inflate_state, ptr %1188, i32 0, i32 1
  store i32 16199, ptr %1189, align 8
  %1190 = load i32, ptr %5, align 4
  %1191 = icmp eq i32 %1190, 6
  br i1 %1191, label %1192, label %1199

1192:                                             ; preds = %1186
  br label %1193

1193:                                             ; preds = %1192
  %1194 = load i64, ptr %11, align 8
  %1195 = lshr i64 %1194, 2
  store i64 %1195, ptr %11, align 8
  %1196 = load i32, ptr %12, align 4
  %1197 = sub i32 %1196, 2
  store i32 %1197, ptr %12, align 4
  br label %1198

1198:                                             ; preds = %1193
  br label %2840

1199:                                             ; preds = %1186
  br label %1208

1200:                                             ; preds = %1179
  %1201 = load ptr, ptr %6, align 8
  %1202 = getelementptr inbounds nuw %struct.inflate_state, ptr %1201, i32 0, i32 1
  store i32 16196, ptr %1202, align 8
  br label %1208

1203:                                             ; preds = %1179
  %1204 = load ptr, ptr %4, align 8
  %1205 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1204, i32 0, i32 6
  store ptr @.str.6, ptr %1205, align 8
  %1206 = load ptr, ptr %6, align 8
  %1207 = getelementptr inbounds nuw %struct.inflate_state, ptr %1206, i32 0, i32 1
  store i32 16209, ptr %1207, align 8
  br label %1208

1208:                                             ; preds = %1203, %1179, %1200, %1199, %1183
  br label %1209

1209:                                             ; preds = %1208
  %1210 = load i64, ptr %11, align 8
  %1211 = lshr i64 %1210, 2
  store i64 %1211, ptr %11, align 8
  %1212 = load i32, ptr %12, align 4
  %1213 = sub i32 %1212, 2
  store i32 %1213, ptr %12, align 4
  br label %1214

1214:                                             ; preds = %1209
  br label %2839

1215:                                             ; preds = %75
  br label %1216

1216:                                             ; preds = %1215
  %1217 = load i32, ptr %12, align 4
  %1218 = and i32 %1217, 7
  %1219 = load i64, ptr %11, align 8
  %1220 = zext i32 %1218 to i64
  %1221 = lshr i64 %1219, %1220
  store i64 %1221, ptr %11, align 8
  %1222 = load i32, ptr %12, align 4
  %1223 = and i32 %1222, 7
  %1224 = load i32, ptr %12, align 4
  %1225 = sub i32 %1224, %1223
  store i32 %1225, ptr %12, align 4
  br label %1226

1226:                                             ; preds = %1216
  br label %1227

1227:                                             ; preds = %1226
  br label %1228

1228:                                             ; preds = %1250, %1227
  %1229 = load i32, ptr %12, align 4
  %1230 = icmp ult i32 %1229, 32
  br i1 %1230, label %1231, label %1251

1231:                                             ; preds = %1228
  br label %1232

1232:                                             ; preds = %1231
  %1233 = load i32, ptr %9, align 4
  %1234 = icmp eq i32 %1233, 0
  br i1 %1234, label %1235, label %1236

1235:                                             ; preds = %1232
  br label %2840

1236:                                             ; preds = %1232
  %1237 = load i32, ptr %9, align 4
  %1238 = add i32 %1237, -1
  store i32 %1238, ptr %9, align 4
  %1239 = load ptr, ptr %7, align 8
  %1240 = getelementptr inbounds nuw i8, ptr %1239, i32 1
  store ptr %1240, ptr %7, align 8
  %1241 = load i8, ptr %1239, align 1
  %1242 = zext i8 %1241 to i64
  %1243 = load i32, ptr %12, align 4
  %1244 = zext i32 %1243 to i64
  %1245 = shl i64 %1242, %1244
  %1246 = load i64, ptr %11, align 8
  %1247 = add i64 %1246, %1245
  store i64 %1247, ptr %11, align 8
  %1248 = load i32, ptr %12, align 4
  %1249 = add i32 %1248, 8
  store i32 %1249, ptr %12, align 4
  br label %1250

1250:                                             ; preds = %1236
  br label %1228, !llvm.loop !16

1251:                                             ; preds = %1228
  br label %1252

1252:                                             ; preds = %1251
  %1253 = load i64, ptr %11, align 8
  %1254 = and i64 %1253, 65535
  %1255 = load i64, ptr %11, align 8
  %1256 = lshr i64 %1255, 16
  %1257 = xor i64 %1256, 65535
  %1258 = icmp ne i64 %1254, %1257
  br i1 %1258, label %1259, label %1264

1259:                                             ; preds = %1252
  %1260 = load ptr, ptr %4, align 8
  %1261 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1260, i32 0, i32 6
  store ptr @.str.7, ptr %1261, align 8
  %1262 = load ptr, ptr %6, align 8
  %1263 = getelementptr inbounds nuw %struct.inflate_state, ptr %1262, i32 0, i32 1
  store i32 16209, ptr %1263, align 8
  br label %2839

1264:                                             ; preds = %1252
  %1265 = load i64, ptr %11, align 8
  %1266 = trunc i64 %1265 to i32
  %1267 = and i32 %1266, 65535
  %1268 = load ptr, ptr %6, align 8
  %1269 = getelementptr inbounds nuw %struct.inflate_state, ptr %1268, i32 0, i32 17
  store i32 %1267, ptr %1269, align 4
  br label %1270

1270:                                             ; preds = %1264
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %1271

1271:                                             ; preds = %1270
  %1272 = load ptr, ptr %6, align 8
  %1273 = getelementptr inbounds nuw %struct.inflate_state, ptr %1272, i32 0, i32 1
  store i32 16194, ptr %1273, align 8
  %1274 = load i32, ptr %5, align 4
  %1275 = icmp eq i32 %1274, 6
  br i1 %1275, label %1276, label %1277

1276:                                             ; preds = %1271
  br label %2840

1277:                                             ; preds = %1271
  br label %1278

1278:                                             ; preds = %75, %1277
  %1279 = load ptr, ptr %6, align 8
  %1280 = getelementptr inbounds nuw %struct.inflate_state, ptr %1279, i32 0, i32 1
  store i32 16195, ptr %1280, align 8
  br label %1281

1281:                                             ; preds = %75, %1278
  %1282 = load ptr, ptr %6, align 8
  %1283 = getelementptr inbounds nuw %struct.inflate_state, ptr %1282, i32 0, i32 17
  %1284 = load i32, ptr %1283, align 4
  store i32 %1284, ptr %15, align 4
  %1285 = load i32, ptr %15, align 4
  %1286 = icmp ne i32 %1285, 0
  br i1 %1286, label %1287, label %1327

1287:                                             ; preds = %1281
  %1288 = load i32, ptr %15, align 4
  %1289 = load i32, ptr %9, align 4
  %1290 = icmp ugt i32 %1288, %1289
  br i1 %1290, label %1291, label %1293

1291:                                             ; preds = %1287
  %1292 = load i32, ptr %9, align 4
  store i32 %1292, ptr %15, align 4
  br label %1293

1293:                                             ; preds = %1291, %1287
  %1294 = load i32, ptr %15, align 4
  %1295 = load i32, ptr %10, align 4
  %1296 = icmp ugt i32 %1294, %1295
  br i1 %1296, label %1297, label %1299

1297:                                             ; preds = %1293
  %1298 = load i32, ptr %10, align 4
  store i32 %1298, ptr %15, align 4
  br label %1299

1299:                                             ; preds = %1297, %1293
  %1300 = load i32, ptr %15, align 4
  %1301 = icmp eq i32 %1300, 0
  br i1 %1301, label %1302, label %1303

1302:                                             ; preds = %1299
  br label %2840

1303:                                             ; preds = %1299
  %1304 = load ptr, ptr %8, align 8
  %1305 = load ptr, ptr %7, align 8
  %1306 = load i32, ptr %15, align 4
  %1307 = zext i32 %1306 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %1304, ptr align 1 %1305, i64 %1307, i1 false)
  %1308 = load i32, ptr %15, align 4
  %1309 = load i32, ptr %9, align 4
  %1310 = sub i32 %1309, %1308
  store i32 %1310, ptr %9, align 4
  %1311 = load i32, ptr %15, align 4
  %1312 = load ptr, ptr %7, align 8
  %1313 = zext i32 %1311 to i64
  %1314 = getelementptr inbounds nuw i8, ptr %1312, i64 %1313
  store ptr %1314, ptr %7, align 8
  %1315 = load i32, ptr %15, align 4
  %1316 = load i32, ptr %10, align 4
  %1317 = sub i32 %1316, %1315
  store i32 %1317, ptr %10, align 4
  %1318 = load i32, ptr %15, align 4
  %1319 = load ptr, ptr %8, align 8
  %1320 = zext i32 %1318 to i64
  %1321 = getelementptr inbounds nuw i8, ptr %1319, i64 %1320
  store ptr %1321, ptr %8, align 8
  %1322 = load i32, ptr %15, align 4
  %1323 = load ptr, ptr %6, align 8
  %1324 = getelementptr inbounds nuw %struct.inflate_state, ptr %1323, i32 0, i32 17
  %1325 = load i32, ptr %1324, align 4
  %1326 = sub i32 %1325, %1322
  store i32 %1326, ptr %1324, align 4
  br label %2839

1327:                                             ; preds = %1281
  %1328 = load ptr, ptr %6, align 8
  %1329 = getelementptr inbounds nuw %struct.inflate_state, ptr %1328, i32 0, i32 1
  store i32 16191, ptr %1329, align 8
  br label %2839

1330:                                             ; preds = %75
  br label %1331

1331:                                             ; preds = %1330
  br label %1332

1332:                                             ; preds = %1354, %1331
  %1333 = load i32, ptr %12, align 4
  %1334 = icmp ult i32 %1333, 14
  br i1 %1334, label %1335, label %1355

1335:                                             ; preds = %1332
  br label %1336

1336:                                             ; preds = %1335
  %1337 = load i32, ptr %9, align 4
  %1338 = icmp eq i32 %1337, 0
  br i1 %1338, label %1339, label %1340

1339:                                             ; preds = %1336
  br label %2840

1340:                                             ; preds = %1336
  %1341 = load i32, ptr %9, align 4
  %1342 = add i32 %1341, -1
  store i32 %1342, ptr %9, align 4
  %1343 = load ptr, ptr %7, align 8
  %1344 = getelementptr inbounds nuw i8, ptr %1343, i32 1
  store ptr %1344, ptr %7, align 8
  %1345 = load i8, ptr %1343, align 1
  %1346 = zext i8 %1345 to i64
  %1347 = load i32, ptr %12, align 4
  %1348 = zext i32 %1347 to i64
  %1349 = shl i64 %1346, %1348
  %1350 = load i64, ptr %11, align 8
  %1351 = add i64 %1350, %1349
  store i64 %1351, ptr %11, align 8
  %1352 = load i32, ptr %12, align 4
  %1353 = add i32 %1352, 8
  store i32 %1353, ptr %12, align 4
  br label %1354

1354:                                             ; preds = %1340
  br label %1332, !llvm.loop !17

1355:                                             ; preds = %1332
  br label %1356

1356:                                             ; preds = %1355
  %1357 = load i64, ptr %11, align 8
  %1358 = trunc i64 %1357 to i32
  %1359 = and i32 %1358, 31
  %1360 = add i32 %1359, 257
  %1361 = load ptr, ptr %6, align 8
  %1362 = getelementptr inbounds nuw %struct.inflate_state, ptr %1361, i32 0, i32 25
  store i32 %1360, ptr %1362, align 4
  br label %1363

1363:                                             ; preds = %1356
  %1364 = load i64, ptr %11, align 8
  %1365 = lshr i64 %1364, 5
  store i64 %1365, ptr %11, align 8
  %1366 = load i32, ptr %12, align 4
  %1367 = sub i32 %1366, 5
  store i32 %1367, ptr %12, align 4
  br label %1368

1368:                                             ; preds = %1363
  %1369 = load i64, ptr %11, align 8
  %1370 = trunc i64 %1369 to i32
  %1371 = and i32 %1370, 31
  %1372 = add i32 %1371, 1
  %1373 = load ptr, ptr %6, align 8
  %1374 = getelementptr inbounds nuw %struct.inflate_state, ptr %1373, i32 0, i32 26
  store i32 %1372, ptr %1374, align 8
  br label %1375

1375:                                             ; preds = %1368
  %1376 = load i64, ptr %11, align 8
  %1377 = lshr i64 %1376, 5
  store i64 %1377, ptr %11, align 8
  %1378 = load i32, ptr %12, align 4
  %1379 = sub i32 %1378, 5
  store i32 %1379, ptr %12, align 4
  br label %1380

1380:                                             ; preds = %1375
  %1381 = load i64, ptr %11, align 8
  %1382 = trunc i64 %1381 to i32
  %1383 = and i32 %1382, 15
  %1384 = add i32 %1383, 4
  %1385 = load ptr, ptr %6, align 8
  %1386 = getelementptr inbounds nuw %struct.inflate_state, ptr %1385, i32 0, i32 24
  store i32 %1384, ptr %1386, align 8
  br label %1387

1387:                                             ; preds = %1380
  %1388 = load i64, ptr %11, align 8
  %1389 = lshr i64 %1388, 4
  store i64 %1389, ptr %11, align 8
  %1390 = load i32, ptr %12, align 4
  %1391 = sub i32 %1390, 4
  store i32 %1391, ptr %12, align 4
  br label %1392

1392:                                             ; preds = %1387
  %1393 = load ptr, ptr %6, align 8
  %1394 = getelementptr inbounds nuw %struct.inflate_state, ptr %1393, i32 0, i32 25
  %1395 = load i32, ptr %1394, align 4
  %1396 = icmp ugt i32 %1395, 286
  br i1 %1396, label %1402, label %1397

1397:                                             ; preds = %1392
  %1398 = load ptr, ptr %6, align 8
  %1399 = getelementptr inbounds nuw %struct.inflate_state, ptr %1398, i32 0, i32 26
  %1400 = load i32, ptr %1399, align 8
  %1401 = icmp ugt i32 %1400, 30
  br i1 %1401, label %1402, label %1407

1402:                                             ; preds = %1397, %1392
  %1403 = load ptr, ptr %4, align 8
  %1404 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1403, i32 0, i32 6
  store ptr @.str.8, ptr %1404, align 8
  %1405 = load ptr, ptr %6, align 8
  %1406 = getelementptr inbounds nuw %struct.inflate_state, ptr %1405, i32 0, i32 1
  store i32 16209, ptr %1406, align 8
  br label %2839

1407:                                             ; preds = %1397
  %1408 = load ptr, ptr %6, align 8
  %1409 = getelementptr inbounds nuw %struct.inflate_state, ptr %1408, i32 0, i32 27
  store i32 0, ptr %1409, align 4
  %1410 = load ptr, ptr %6, align 8
  %1411 = getelementptr inbounds nuw %struct.inflate_state, ptr %1410, i32 0, i32 1
  store i32 16197, ptr %1411, align 8
  br label %1412

1412:                                             ; preds = %75, %1407
  br label %1413

1413:                                             ; preds = %1468, %1412
  %1414 = load ptr, ptr %6, align 8
  %1415 = getelementptr inbounds nuw %struct.inflate_state, ptr %1414, i32 0, i32 27
  %1416 = load i32, ptr %1415, align 4
  %1417 = load ptr, ptr %6, align 8
  %1418 = getelementptr inbounds nuw %struct.inflate_state, ptr %1417, i32 0, i32 24
  %1419 = load i32, ptr %1418, align 8
  %1420 = icmp ult i32 %1416, %1419
  br i1 %1420, label %1421, label %1469

1421:                                             ; preds = %1413
  br label %1422

1422:                                             ; preds = %1421
  br label %1423

1423:                                             ; preds = %1445, %1422
  %1424 = load i32, ptr %12, align 4
  %1425 = icmp ult i32 %1424, 3
  br i1 %1425, label %1426, label %1446

1426:                                             ; preds = %1423
  br label %1427

1427:                                             ; preds = %1426
  %1428 = load i32, ptr %9, align 4
  %1429 = icmp eq i32 %1428, 0
  br i1 %1429, label %1430, label %1431

1430:                                             ; preds = %1427
  br label %2840

1431:                                             ; preds = %1427
  %1432 = load i32, ptr %9, align 4
  %1433 = add i32 %1432, -1
  store i32 %1433, ptr %9, align 4
  %1434 = load ptr, ptr %7, align 8
  %1435 = getelementptr inbounds nuw i8, ptr %1434, i32 1
  store ptr %1435, ptr %7, align 8
  %1436 = load i8, ptr %1434, align 1
  %1437 = zext i8 %1436 to i64
  %1438 = load i32, ptr %12, align 4
  %1439 = zext i32 %1438 to i64
  %1440 = shl i64 %1437, %1439
  %1441 = load i64, ptr %11, align 8
  %1442 = add i64 %1441, %1440
  store i64 %1442, ptr %11, align 8
  %1443 = load i32, ptr %12, align 4
  %1444 = add i32 %1443, 8
  store i32 %1444, ptr %12, align 4
  br label %1445

1445:                                             ; preds = %1431
  br label %1423, !llvm.loop !18

1446:                                             ; preds = %1423
  br label %1447

1447:                                             ; preds = %1446
  %1448 = load i64, ptr %11, align 8
  %1449 = trunc i64 %1448 to i32
  %1450 = and i32 %1449, 7
  %1451 = trunc i32 %1450 to i16
  %1452 = load ptr, ptr %6, align 8
  %1453 = getelementptr inbounds nuw %struct.inflate_state, ptr %1452, i32 0, i32 29
  %1454 = load ptr, ptr %6, align 8
  %1455 = getelementptr inbounds nuw %struct.inflate_state, ptr %1454, i32 0, i32 27
  %1456 = load i32, ptr %1455, align 4
  %1457 = add i32 %1456, 1
  store i32 %1457, ptr %1455, align 4
  %1458 = zext i32 %1456 to i64
  %1459 = getelementptr inbounds nuw [19 x i16], ptr @inflate.order, i64 0, i64 %1458
  %1460 = load i16, ptr %1459, align 2
  %1461 = zext i16 %1460 to i64
  %1462 = getelementptr inbounds nuw [320 x i16], ptr %1453, i64 0, i64 %1461
  store i16 %1451, ptr %1462, align 2
  br label %1463

1463:                                             ; preds = %1447
  %1464 = load i64, ptr %11, align 8
  %1465 = lshr i64 %1464, 3
  store i64 %1465, ptr %11, align 8
  %1466 = load i32, ptr %12, align 4
  %1467 = sub i32 %1466, 3
  store i32 %1467, ptr %12, align 4
  br label %1468

1468:                                             ; preds = %1463
  br label %1413, !llvm.loop !19

1469:                                             ; preds = %1413
  br label %1470

1470:                                             ; preds = %1475, %1469
  %1471 = load ptr, ptr %6, align 8
  %1472 = getelementptr inbounds nuw %struct.inflate_state, ptr %1471, i32 0, i32 27
  %1473 = load i32, ptr %1472, align 4
  %1474 = icmp ult i32 %1473, 19
  br i1 %1474, label %1475, label %1487

1475:                                             ; preds = %1470
  %1476 = load ptr, ptr %6, align 8
  %1477 = getelementptr inbounds nuw %struct.inflate_state, ptr %1476, i32 0, i32 29
  %1478 = load ptr, ptr %6, align 8
  %1479 = getelementptr inbounds nuw %struct.inflate_state, ptr %1478, i32 0, i32 27
  %1480 = load i32, ptr %1479, align 4
  %1481 = add i32 %1480, 1
  store i32 %1481, ptr %1479, align 4
  %1482 = zext i32 %1480 to i64
  %1483 = getelementptr inbounds nuw [19 x i16], ptr @inflate.order, i64 0, i64 %1482
  %1484 = load i16, ptr %1483, align 2
  %1485 = zext i16 %1484 to i64
  %1486 = getelementptr inbounds nuw [320 x i16], ptr %1477, i64 0, i64 %1485
  store i16 0, ptr %1486, align 2
  br label %1470, !llvm.loop !20

1487:                                             ; preds = %1470
  %1488 = load ptr, ptr %6, align 8
  %1489 = getelementptr inbounds nuw %struct.inflate_state, ptr %1488, i32 0, i32 31
  %1490 = getelementptr inbounds [1444 x %struct.code], ptr %1489, i64 0, i64 0
  %1491 = load ptr, ptr %6, align 8
  %1492 = getelementptr inbounds nuw %struct.inflate_state, ptr %1491, i32 0, i32 28
  store ptr %1490, ptr %1492, align 8
  %1493 = load ptr, ptr %6, align 8
  %1494 = getelementptr inbounds nuw %struct.inflate_state, ptr %1493, i32 0, i32 28
  %1495 = load ptr, ptr %1494, align 8
  %1496 = load ptr, ptr %6, align 8
  %1497 = getelementptr inbounds nuw %struct.inflate_state, ptr %1496, i32 0, i32 20
  store ptr %1495, ptr %1497, align 8
  %1498 = load ptr, ptr %6, align 8
  %1499 = getelementptr inbounds nuw %struct.inflate_state, ptr %1498, i32 0, i32 22
  store i32 7, ptr %1499, align 8
  %1500 = load ptr, ptr %6, align 8
  %1501 = getelementptr inbounds nuw %struct.inflate_state, ptr %1500, i32 0, i32 29
  %1502 = getelementptr inbounds [320 x i16], ptr %1501, i64 0, i64 0
  %1503 = load ptr, ptr %6, align 8
  %1504 = getelementptr inbounds nuw %struct.inflate_state, ptr %1503, i32 0, i32 28
  %1505 = load ptr, ptr %6, align 8
  %1506 = getelementptr inbounds nuw %struct.inflate_state, ptr %1505, i32 0, i32 22
  %1507 = load ptr, ptr %6, align 8
  %1508 = getelementptr inbounds nuw %struct.inflate_state, ptr %1507, i32 0, i32 30
  %1509 = getelementptr inbounds [288 x i16], ptr %1508, i64 0, i64 0
  %1510 = call i32 @inflate_table(i32 noundef 0, ptr noundef %1502, i32 noundef 19, ptr noundef %1504, ptr noundef %1506, ptr noundef %1509)
  store i32 %1510, ptr %20, align 4
  %1511 = load i32, ptr %20, align 4
  %1512 = icmp ne i32 %1511, 0
  br i1 %1512, label %1513, label %1518

1513:                                             ; preds = %1487
  %1514 = load ptr, ptr %4, align 8
  %1515 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1514, i32 0, i32 6
  store ptr @.str.9, ptr %1515, align 8
  %1516 = load ptr, ptr %6, align 8
  %1517 = getelementptr inbounds nuw %struct.inflate_state, ptr %1516, i32 0, i32 1
  store i32 16209, ptr %1517, align 8
  br label %2839

1518:                                             ; preds = %1487
  %1519 = load ptr, ptr %6, align 8
  %1520 = getelementptr inbounds nuw %struct.inflate_state, ptr %1519, i32 0, i32 27
  store i32 0, ptr %1520, align 4
  %1521 = load ptr, ptr %6, align 8
  %1522 = getelementptr inbounds nuw %struct.inflate_state, ptr %1521, i32 0, i32 1
  store i32 16198, ptr %1522, align 8
  br label %1523

1523:                                             ; preds = %75, %1518
  br label %1524

1524:                                             ; preds = %1835, %1523
  %1525 = load ptr, ptr %6, align 8
  %1526 = getelementptr inbounds nuw %struct.inflate_state, ptr %1525, i32 0, i32 27
  %1527 = load i32, ptr %1526, align 4
  %1528 = load ptr, ptr %6, align 8
  %1529 = getelementptr inbounds nuw %struct.inflate_state, ptr %1528, i32 0, i32 25
  %1530 = load i32, ptr %1529, align 4
  %1531 = load ptr, ptr %6, align 8
  %1532 = getelementptr inbounds nuw %struct.inflate_state, ptr %1531, i32 0, i32 26
  %1533 = load i32, ptr %1532, align 8
  %1534 = add i32 %1530, %1533
  %1535 = icmp ult i32 %1527, %1534
  br i1 %1535, label %1536, label %1836

1536:                                             ; preds = %1524
  br label %1537

1537:                                             ; preds = %1576, %1536
  %1538 = load ptr, ptr %6, align 8
  %1539 = getelementptr inbounds nuw %struct.inflate_state, ptr %1538, i32 0, i32 20
  %1540 = load ptr, ptr %1539, align 8
  %1541 = load i64, ptr %11, align 8
  %1542 = trunc i64 %1541 to i32
  %1543 = load ptr, ptr %6, align 8
  %1544 = getelementptr inbounds nuw %struct.inflate_state, ptr %1543, i32 0, i32 22
  %1545 = load i32, ptr %1544, align 8
  %1546 = shl i32 1, %1545
  %1547 = sub i32 %1546, 1
  %1548 = and i32 %1542, %1547
  %1549 = zext i32 %1548 to i64
  %1550 = getelementptr inbounds nuw %struct.code, ptr %1540, i64 %1549
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %17, ptr align 2 %1550, i64 4, i1 false)
  %1551 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1552 = load i8, ptr %1551, align 1
  %1553 = zext i8 %1552 to i32
  %1554 = load i32, ptr %12, align 4
  %1555 = icmp ule i32 %1553, %1554
  br i1 %1555, label %1556, label %1557

1556:                                             ; preds = %1537
  br label %1577

1557:                                             ; preds = %1537
  br label %1558

1558:                                             ; preds = %1557
  %1559 = load i32, ptr %9, align 4
  %1560 = icmp eq i32 %1559, 0
  br i1 %1560, label %1561, label %1562

1561:                                             ; preds = %1558
  br label %2840

1562:                                             ; preds = %1558
  %1563 = load i32, ptr %9, align 4
  %1564 = add i32 %1563, -1
  store i32 %1564, ptr %9, align 4
  %1565 = load ptr, ptr %7, align 8
  %1566 = getelementptr inbounds nuw i8, ptr %1565, i32 1
  store ptr %1566, ptr %7, align 8
  %1567 = load i8, ptr %1565, align 1
  %1568 = zext i8 %1567 to i64
  %1569 = load i32, ptr %12, align 4
  %1570 = zext i32 %1569 to i64
  %1571 = shl i64 %1568, %1570
  %1572 = load i64, ptr %11, align 8
  %1573 = add i64 %1572, %1571
  store i64 %1573, ptr %11, align 8
  %1574 = load i32, ptr %12, align 4
  %1575 = add i32 %1574, 8
  store i32 %1575, ptr %12, align 4
  br label %1576

1576:                                             ; preds = %1562
  br label %1537

1577:                                             ; preds = %1556
  %1578 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %1579 = load i16, ptr %1578, align 2
  %1580 = zext i16 %1579 to i32
  %1581 = icmp slt i32 %1580, 16
  br i1 %1581, label %1582, label %1606

1582:                                             ; preds = %1577
  br label %1583

1583:                                             ; preds = %1582
  %1584 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1585 = load i8, ptr %1584, align 1
  %1586 = zext i8 %1585 to i32
  %1587 = load i64, ptr %11, align 8
  %1588 = zext i32 %1586 to i64
  %1589 = lshr i64 %1587, %1588
  store i64 %1589, ptr %11, align 8
  %1590 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1591 = load i8, ptr %1590, align 1
  %1592 = zext i8 %1591 to i32
  %1593 = load i32, ptr %12, align 4
  %1594 = sub i32 %1593, %1592
  store i32 %1594, ptr %12, align 4
  br label %1595

1595:                                             ; preds = %1583
  %1596 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %1597 = load i16, ptr %1596, align 2
  %1598 = load ptr, ptr %6, align 8
  %1599 = getelementptr inbounds nuw %struct.inflate_state, ptr %1598, i32 0, i32 29
  %1600 = load ptr, ptr %6, align 8
  %1601 = getelementptr inbounds nuw %struct.inflate_state, ptr %1600, i32 0, i32 27
  %1602 = load i32, ptr %1601, align 4
  %1603 = add i32 %1602, 1
  store i32 %1603, ptr %1601, align 4
  %1604 = zext i32 %1602 to i64
  %1605 = getelementptr inbounds nuw [320 x i16], ptr %1599, i64 0, i64 %1604
  store i16 %1597, ptr %1605, align 2
  br label %1835

1606:                                             ; preds = %1577
  %1607 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %1608 = load i16, ptr %1607, align 2
  %1609 = zext i16 %1608 to i32
  %1610 = icmp eq i32 %1609, 16
  br i1 %1610, label %1611, label %1685

1611:                                             ; preds = %1606
  br label %1612

1612:                                             ; preds = %1611
  br label %1613

1613:                                             ; preds = %1639, %1612
  %1614 = load i32, ptr %12, align 4
  %1615 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1616 = load i8, ptr %1615, align 1
  %1617 = zext i8 %1616 to i32
  %1618 = add nsw i32 %1617, 2
  %1619 = icmp ult i32 %1614, %1618
  br i1 %1619, label %1620, label %1640

1620:                                             ; preds = %1613
  br label %1621

1621:                                             ; preds = %1620
  %1622 = load i32, ptr %9, align 4
  %1623 = icmp eq i32 %1622, 0
  br i1 %1623, label %1624, label %1625

1624:                                             ; preds = %1621
  br label %2840

1625:                                             ; preds = %1621
  %1626 = load i32, ptr %9, align 4
  %1627 = add i32 %1626, -1
  store i32 %1627, ptr %9, align 4
  %1628 = load ptr, ptr %7, align 8
  %1629 = getelementptr inbounds nuw i8, ptr %1628, i32 1
  store ptr %1629, ptr %7, align 8
  %1630 = load i8, ptr %1628, align 1
  %1631 = zext i8 %1630 to i64
  %1632 = load i32, ptr %12, align 4
  %1633 = zext i32 %1632 to i64
  %1634 = shl i64 %1631, %1633
  %1635 = load i64, ptr %11, align 8
  %1636 = add i64 %1635, %1634
  store i64 %1636, ptr %11, align 8
  %1637 = load i32, ptr %12, align 4
  %1638 = add i32 %1637, 8
  store i32 %1638, ptr %12, align 4
  br label %1639

1639:                                             ; preds = %1625
  br label %1613, !llvm.loop !21

1640:                                             ; preds = %1613
  br label %1641

1641:                                             ; preds = %1640
  br label %1642

1642:                                             ; preds = %1641
  %1643 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1644 = load i8, ptr %1643, align 1
  %1645 = zext i8 %1644 to i32
  %1646 = load i64, ptr %11, align 8
  %1647 = zext i32 %1645 to i64
  %1648 = lshr i64 %1646, %1647
  store i64 %1648, ptr %11, align 8
  %1649 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1650 = load i8, ptr %1649, align 1
  %1651 = zext i8 %1650 to i32
  %1652 = load i32, ptr %12, align 4
  %1653 = sub i32 %1652, %1651
  store i32 %1653, ptr %12, align 4
  br label %1654

1654:                                             ; preds = %1642
  %1655 = load ptr, ptr %6, align 8
  %1656 = getelementptr inbounds nuw %struct.inflate_state, ptr %1655, i32 0, i32 27
  %1657 = load i32, ptr %1656, align 4
  %1658 = icmp eq i32 %1657, 0
  br i1 %1658, label %1659, label %1664

1659:                                             ; preds = %1654
  %1660 = load ptr, ptr %4, align 8
  %1661 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1660, i32 0, i32 6
  store ptr @.str.10, ptr %1661, align 8
  %1662 = load ptr, ptr %6, align 8
  %1663 = getelementptr inbounds nuw %struct.inflate_state, ptr %1662, i32 0, i32 1
  store i32 16209, ptr %1663, align 8
  br label %1836

1664:                                             ; preds = %1654
  %1665 = load ptr, ptr %6, align 8
  %1666 = getelementptr inbounds nuw %struct.inflate_state, ptr %1665, i32 0, i32 29
  %1667 = load ptr, ptr %6, align 8
  %1668 = getelementptr inbounds nuw %struct.inflate_state, ptr %1667, i32 0, i32 27
  %1669 = load i32, ptr %1668, align 4
  %1670 = sub i32 %1669, 1
  %1671 = zext i32 %1670 to i64
  %1672 = getelementptr inbounds nuw [320 x i16], ptr %1666, i64 0, i64 %1671
  %1673 = load i16, ptr %1672, align 2
  %1674 = zext i16 %1673 to i32
  store i32 %1674, ptr %19, align 4
  %1675 = load i64, ptr %11, align 8
  %1676 = trunc i64 %1675 to i32
  %1677 = and i32 %1676, 3
  %1678 = add i32 3, %1677
  store i32 %1678, ptr %15, align 4
  br label %1679

1679:                                             ; preds = %1664
  %1680 = load i64, ptr %11, align 8
  %1681 = lshr i64 %1680, 2
  store i64 %1681, ptr %11, align 8
  %1682 = load i32, ptr %12, align 4
  %1683 = sub i32 %1682, 2
  store i32 %1683, ptr %12, align 4
  br label %1684

1684:                                             ; preds = %1679
  br label %1799

1685:                                             ; preds = %1606
  %1686 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %1687 = load i16, ptr %1686, align 2
  %1688 = zext i16 %1687 to i32
  %1689 = icmp eq i32 %1688, 17
  br i1 %1689, label %1690, label %1744

1690:                                             ; preds = %1685
  br label %1691

1691:                                             ; preds = %1690
  br label %1692

1692:                                             ; preds = %1718, %1691
  %1693 = load i32, ptr %12, align 4
  %1694 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1695 = load i8, ptr %1694, align 1
  %1696 = zext i8 %1695 to i32
  %1697 = add nsw i32 %1696, 3
  %1698 = icmp ult i32 %1693, %1697
  br i1 %1698, label %1699, label %1719

1699:                                             ; preds = %1692
  br label %1700

1700:                                             ; preds = %1699
  %1701 = load i32, ptr %9, align 4
  %1702 = icmp eq i32 %1701, 0
  br i1 %1702, label %1703, label %1704

1703:                                             ; preds = %1700
  br label %2840

1704:                                             ; preds = %1700
  %1705 = load i32, ptr %9, align 4
  %1706 = add i32 %1705, -1
  store i32 %1706, ptr %9, align 4
  %1707 = load ptr, ptr %7, align 8
  %1708 = getelementptr inbounds nuw i8, ptr %1707, i32 1
  store ptr %1708, ptr %7, align 8
  %1709 = load i8, ptr %1707, align 1
  %1710 = zext i8 %1709 to i64
  %1711 = load i32, ptr %12, align 4
  %1712 = zext i32 %1711 to i64
  %1713 = shl i64 %1710, %1712
  %1714 = load i64, ptr %11, align 8
  %1715 = add i64 %1714, %1713
  store i64 %1715, ptr %11, align 8
  %1716 = load i32, ptr %12, align 4
  %1717 = add i32 %1716, 8
  store i32 %1717, ptr %12, align 4
  br label %1718

1718:                                             ; preds = %1704
  br label %1692, !llvm.loop !22

1719:                                             ; preds = %1692
  br label %1720

1720:                                             ; preds = %1719
  br label %1721

1721:                                             ; preds = %1720
  %1722 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1723 = load i8, ptr %1722, align 1
  %1724 = zext i8 %1723 to i32
  %1725 = load i64, ptr %11, align 8
  %1726 = zext i32 %1724 to i64
  %1727 = lshr i64 %1725, %1726
  store i64 %1727, ptr %11, align 8
  %1728 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1729 = load i8, ptr %1728, align 1
  %1730 = zext i8 %1729 to i32
  %1731 = load i32, ptr %12, align 4
  %1732 = sub i32 %1731, %1730
  store i32 %1732, ptr %12, align 4
  br label %1733

1733:                                             ; preds = %1721
  store i32 0, ptr %19, align 4
  %1734 = load i64, ptr %11, align 8
  %1735 = trunc i64 %1734 to i32
  %1736 = and i32 %1735, 7
  %1737 = add i32 3, %1736
  store i32 %1737, ptr %15, align 4
  br label %1738

1738:                                             ; preds = %1733
  %1739 = load i64, ptr %11, align 8
  %1740 = lshr i64 %1739, 3
  store i64 %1740, ptr %11, align 8
  %1741 = load i32, ptr %12, align 4
  %1742 = sub i32 %1741, 3
  store i32 %1742, ptr %12, align 4
  br label %1743

1743:                                             ; preds = %1738
  br label %1798

1744:                                             ; preds = %1685
  br label %1745

1745:                                             ; preds = %1744
  br label %1746

1746:                                             ; preds = %1772, %1745
  %1747 = load i32, ptr %12, align 4
  %1748 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1749 = load i8, ptr %1748, align 1
  %1750 = zext i8 %1749 to i32
  %1751 = add nsw i32 %1750, 7
  %1752 = icmp ult i32 %1747, %1751
  br i1 %1752, label %1753, label %1773

1753:                                             ; preds = %1746
  br label %1754

1754:                                             ; preds = %1753
  %1755 = load i32, ptr %9, align 4
  %1756 = icmp eq i32 %1755, 0
  br i1 %1756, label %1757, label %1758

1757:                                             ; preds = %1754
  br label %2840

1758:                                             ; preds = %1754
  %1759 = load i32, ptr %9, align 4
  %1760 = add i32 %1759, -1
  store i32 %1760, ptr %9, align 4
  %1761 = load ptr, ptr %7, align 8
  %1762 = getelementptr inbounds nuw i8, ptr %1761, i32 1
  store ptr %1762, ptr %7, align 8
  %1763 = load i8, ptr %1761, align 1
  %1764 = zext i8 %1763 to i64
  %1765 = load i32, ptr %12, align 4
  %1766 = zext i32 %1765 to i64
  %1767 = shl i64 %1764, %1766
  %1768 = load i64, ptr %11, align 8
  %1769 = add i64 %1768, %1767
  store i64 %1769, ptr %11, align 8
  %1770 = load i32, ptr %12, align 4
  %1771 = add i32 %1770, 8
  store i32 %1771, ptr %12, align 4
  br label %1772

1772:                                             ; preds = %1758
  br label %1746, !llvm.loop !23

1773:                                             ; preds = %1746
  br label %1774

1774:                                             ; preds = %1773
  br label %1775

1775:                                             ; preds = %1774
  %1776 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1777 = load i8, ptr %1776, align 1
  %1778 = zext i8 %1777 to i32
  %1779 = load i64, ptr %11, align 8
  %1780 = zext i32 %1778 to i64
  %1781 = lshr i64 %1779, %1780
  store i64 %1781, ptr %11, align 8
  %1782 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %1783 = load i8, ptr %1782, align 1
  %1784 = zext i8 %1783 to i32
  %1785 = load i32, ptr %12, align 4
  %1786 = sub i32 %1785, %1784
  store i32 %1786, ptr %12, align 4
  br label %1787

1787:                                             ; preds = %1775
  store i32 0, ptr %19, align 4
  %1788 = load i64, ptr %11, align 8
  %1789 = trunc i64 %1788 to i32
  %1790 = and i32 %1789, 127
  %1791 = add i32 11, %1790
  store i32 %1791, ptr %15, align 4
  br label %1792

1792:                                             ; preds = %1787
  %1793 = load i64, ptr %11, align 8
  %1794 = lshr i64 %1793, 7
  store i64 %1794, ptr %11, align 8
  %1795 = load i32, ptr %12, align 4
  %1796 = sub i32 %1795, 7
  store i32 %1796, ptr %12, align 4
  br label %1797

1797:                                             ; preds = %1792
  br label %1798

1798:                                             ; preds = %1797, %1743
  br label %1799

1799:                                             ; preds = %1798, %1684
  %1800 = load ptr, ptr %6, align 8
  %1801 = getelementptr inbounds nuw %struct.inflate_state, ptr %1800, i32 0, i32 27
  %1802 = load i32, ptr %1801, align 4
  %1803 = load i32, ptr %15, align 4
  %1804 = add i32 %1802, %1803
  %1805 = load ptr, ptr %6, align 8
  %1806 = getelementptr inbounds nuw %struct.inflate_state, ptr %1805, i32 0, i32 25
  %1807 = load i32, ptr %1806, align 4
  %1808 = load ptr, ptr %6, align 8
  %1809 = getelementptr inbounds nuw %struct.inflate_state, ptr %1808, i32 0, i32 26
  %1810 = load i32, ptr %1809, align 8
  %1811 = add i32 %1807, %1810
  %1812 = icmp ugt i32 %1804, %1811
  br i1 %1812, label %1813, label %1818

1813:                                             ; preds = %1799
  %1814 = load ptr, ptr %4, align 8
  %1815 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1814, i32 0, i32 6
  store ptr @.str.10, ptr %1815, align 8
  %1816 = load ptr, ptr %6, align 8
  %1817 = getelementptr inbounds nuw %struct.inflate_state, ptr %1816, i32 0, i32 1
  store i32 16209, ptr %1817, align 8
  br label %1836

1818:                                             ; preds = %1799
  br label %1819

1819:                                             ; preds = %1823, %1818
  %1820 = load i32, ptr %15, align 4
  %1821 = add i32 %1820, -1
  store i32 %1821, ptr %15, align 4
  %1822 = icmp ne i32 %1820, 0
  br i1 %1822, label %1823, label %1834

1823:                                             ; preds = %1819
  %1824 = load i32, ptr %19, align 4
  %1825 = trunc i32 %1824 to i16
  %1826 = load ptr, ptr %6, align 8
  %1827 = getelementptr inbounds nuw %struct.inflate_state, ptr %1826, i32 0, i32 29
  %1828 = load ptr, ptr %6, align 8
  %1829 = getelementptr inbounds nuw %struct.inflate_state, ptr %1828, i32 0, i32 27
  %1830 = load i32, ptr %1829, align 4
  %1831 = add i32 %1830, 1
  store i32 %1831, ptr %1829, align 4
  %1832 = zext i32 %1830 to i64
  %1833 = getelementptr inbounds nuw [320 x i16], ptr %1827, i64 0, i64 %1832
  store i16 %1825, ptr %1833, align 2
  br label %1819, !llvm.loop !24

1834:                                             ; preds = %1819
  br label %1835

1835:                                             ; preds = %1834, %1595
  br label %1524, !llvm.loop !25

1836:                                             ; preds = %1813, %1659, %1524
  %1837 = load ptr, ptr %6, align 8
  %1838 = getelementptr inbounds nuw %struct.inflate_state, ptr %1837, i32 0, i32 1
  %1839 = load i32, ptr %1838, align 8
  %1840 = icmp eq i32 %1839, 16209
  br i1 %1840, label %1841, label %1842

1841:                                             ; preds = %1836
  br label %2839

1842:                                             ; preds = %1836
  %1843 = load ptr, ptr %6, align 8
  %1844 = getelementptr inbounds nuw %struct.inflate_state, ptr %1843, i32 0, i32 29
  %1845 = getelementptr inbounds [320 x i16], ptr %1844, i64 0, i64 256
  %1846 = load i16, ptr %1845, align 8
  %1847 = zext i16 %1846 to i32
  %1848 = icmp eq i32 %1847, 0
  br i1 %1848, label %1849, label %1854

1849:                                             ; preds = %1842
  %1850 = load ptr, ptr %4, align 8
  %1851 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1850, i32 0, i32 6
  store ptr @.str.11, ptr %1851, align 8
  %1852 = load ptr, ptr %6, align 8
  %1853 = getelementptr inbounds nuw %struct.inflate_state, ptr %1852, i32 0, i32 1
  store i32 16209, ptr %1853, align 8
  br label %2839

1854:                                             ; preds = %1842
  %1855 = load ptr, ptr %6, align 8
  %1856 = getelementptr inbounds nuw %struct.inflate_state, ptr %1855, i32 0, i32 31
  %1857 = getelementptr inbounds [1444 x %struct.code], ptr %1856, i64 0, i64 0
  %1858 = load ptr, ptr %6, align 8
  %1859 = getelementptr inbounds nuw %struct.inflate_state, ptr %1858, i32 0, i32 28
  store ptr %1857, ptr %1859, align 8
  %1860 = load ptr, ptr %6, align 8
  %1861 = getelementptr inbounds nuw %struct.inflate_state, ptr %1860, i32 0, i32 28
  %1862 = load ptr, ptr %1861, align 8
  %1863 = load ptr, ptr %6, align 8
  %1864 = getelementptr inbounds nuw %struct.inflate_state, ptr %1863, i32 0, i32 20
  store ptr %1862, ptr %1864, align 8
  %1865 = load ptr, ptr %6, align 8
  %1866 = getelementptr inbounds nuw %struct.inflate_state, ptr %1865, i32 0, i32 22
  store i32 9, ptr %1866, align 8
  %1867 = load ptr, ptr %6, align 8
  %1868 = getelementptr inbounds nuw %struct.inflate_state, ptr %1867, i32 0, i32 29
  %1869 = getelementptr inbounds [320 x i16], ptr %1868, i64 0, i64 0
  %1870 = load ptr, ptr %6, align 8
  %1871 = getelementptr inbounds nuw %struct.inflate_state, ptr %1870, i32 0, i32 25
  %1872 = load i32, ptr %1871, align 4
  %1873 = load ptr, ptr %6, align 8
  %1874 = getelementptr inbounds nuw %struct.inflate_state, ptr %1873, i32 0, i32 28
  %1875 = load ptr, ptr %6, align 8
  %1876 = getelementptr inbounds nuw %struct.inflate_state, ptr %1875, i32 0, i32 22
  %1877 = load ptr, ptr %6, align 8
  %1878 = getelementptr inbounds nuw %struct.inflate_state, ptr %1877, i32 0, i32 30
  %1879 = getelementptr inbounds [288 x i16], ptr %1878, i64 0, i64 0
  %1880 = call i32 @inflate_table(i32 noundef 1, ptr noundef %1869, i32 noundef %1872, ptr noundef %1874, ptr noundef %1876, ptr noundef %1879)
  store i32 %1880, ptr %20, align 4
  %1881 = load i32, ptr %20, align 4
  %1882 = icmp ne i32 %1881, 0
  br i1 %1882, label %1883, label %1888

1883:                                             ; preds = %1854
  %1884 = load ptr, ptr %4, align 8
  %1885 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1884, i32 0, i32 6
  store ptr @.str.12, ptr %1885, align 8
  %1886 = load ptr, ptr %6, align 8
  %1887 = getelementptr inbounds nuw %struct.inflate_state, ptr %1886, i32 0, i32 1
  store i32 16209, ptr %1887, align 8
  br label %2839

1888:                                             ; preds = %1854
  %1889 = load ptr, ptr %6, align 8
  %1890 = getelementptr inbounds nuw %struct.inflate_state, ptr %1889, i32 0, i32 28
  %1891 = load ptr, ptr %1890, align 8
  %1892 = load ptr, ptr %6, align 8
  %1893 = getelementptr inbounds nuw %struct.inflate_state, ptr %1892, i32 0, i32 21
  store ptr %1891, ptr %1893, align 8
  %1894 = load ptr, ptr %6, align 8
  %1895 = getelementptr inbounds nuw %struct.inflate_state, ptr %1894, i32 0, i32 23
  store i32 6, ptr %1895, align 4
  %1896 = load ptr, ptr %6, align 8
  %1897 = getelementptr inbounds nuw %struct.inflate_state, ptr %1896, i32 0, i32 29
  %1898 = getelementptr inbounds [320 x i16], ptr %1897, i64 0, i64 0
  %1899 = load ptr, ptr %6, align 8
  %1900 = getelementptr inbounds nuw %struct.inflate_state, ptr %1899, i32 0, i32 25
  %1901 = load i32, ptr %1900, align 4
  %1902 = zext i32 %1901 to i64
  %1903 = getelementptr inbounds nuw i16, ptr %1898, i64 %1902
  %1904 = load ptr, ptr %6, align 8
  %1905 = getelementptr inbounds nuw %struct.inflate_state, ptr %1904, i32 0, i32 26
  %1906 = load i32, ptr %1905, align 8
  %1907 = load ptr, ptr %6, align 8
  %1908 = getelementptr inbounds nuw %struct.inflate_state, ptr %1907, i32 0, i32 28
  %1909 = load ptr, ptr %6, align 8
  %1910 = getelementptr inbounds nuw %struct.inflate_state, ptr %1909, i32 0, i32 23
  %1911 = load ptr, ptr %6, align 8
  %1912 = getelementptr inbounds nuw %struct.inflate_state, ptr %1911, i32 0, i32 30
  %1913 = getelementptr inbounds [288 x i16], ptr %1912, i64 0, i64 0
  %1914 = call i32 @inflate_table(i32 noundef 2, ptr noundef %1903, i32 noundef %1906, ptr noundef %1908, ptr noundef %1910, ptr noundef %1913)
  store i32 %1914, ptr %20, align 4
  %1915 = load i32, ptr %20, align 4
  %1916 = icmp ne i32 %1915, 0
  br i1 %1916, label %1917, label %1922

1917:                                             ; preds = %1888
  %1918 = load ptr, ptr %4, align 8
  %1919 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1918, i32 0, i32 6
  store ptr @.str.13, ptr %1919, align 8
  %1920 = load ptr, ptr %6, align 8
  %1921 = getelementptr inbounds nuw %struct.inflate_state, ptr %1920, i32 0, i32 1
  store i32 16209, ptr %1921, align 8
  br label %2839

1922:                                             ; preds = %1888
  %1923 = load ptr, ptr %6, align 8
  %1924 = getelementptr inbounds nuw %struct.inflate_state, ptr %1923, i32 0, i32 1
  store i32 16199, ptr %1924, align 8
  %1925 = load i32, ptr %5, align 4
  %1926 = icmp eq i32 %1925, 6
  br i1 %1926, label %1927, label %1928

1927:                                             ; preds = %1922
  br label %2840

1928:                                             ; preds = %1922
  br label %1929

1929:                                             ; preds = %75, %1928
  %1930 = load ptr, ptr %6, align 8
  %1931 = getelementptr inbounds nuw %struct.inflate_state, ptr %1930, i32 0, i32 1
  store i32 16200, ptr %1931, align 8
  br label %1932

1932:                                             ; preds = %75, %1929
  %1933 = load i32, ptr %9, align 4
  %1934 = icmp uge i32 %1933, 6
  br i1 %1934, label %1935, label %1989

1935:                                             ; preds = %1932
  %1936 = load i32, ptr %10, align 4
  %1937 = icmp uge i32 %1936, 258
  br i1 %1937, label %1938, label %1989

1938:                                             ; preds = %1935
  br label %1939

1939:                                             ; preds = %1938
  %1940 = load ptr, ptr %8, align 8
  %1941 = load ptr, ptr %4, align 8
  %1942 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1941, i32 0, i32 3
  store ptr %1940, ptr %1942, align 8
  %1943 = load i32, ptr %10, align 4
  %1944 = load ptr, ptr %4, align 8
  %1945 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1944, i32 0, i32 4
  store i32 %1943, ptr %1945, align 8
  %1946 = load ptr, ptr %7, align 8
  %1947 = load ptr, ptr %4, align 8
  %1948 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1947, i32 0, i32 0
  store ptr %1946, ptr %1948, align 8
  %1949 = load i32, ptr %9, align 4
  %1950 = load ptr, ptr %4, align 8
  %1951 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1950, i32 0, i32 1
  store i32 %1949, ptr %1951, align 8
  %1952 = load i64, ptr %11, align 8
  %1953 = load ptr, ptr %6, align 8
  %1954 = getelementptr inbounds nuw %struct.inflate_state, ptr %1953, i32 0, i32 15
  store i64 %1952, ptr %1954, align 8
  %1955 = load i32, ptr %12, align 4
  %1956 = load ptr, ptr %6, align 8
  %1957 = getelementptr inbounds nuw %struct.inflate_state, ptr %1956, i32 0, i32 16
  store i32 %1955, ptr %1957, align 8
  br label %1958

1958:                                             ; preds = %1939
  %1959 = load ptr, ptr %4, align 8
  %1960 = load i32, ptr %14, align 4
  call void @inflate_fast(ptr noundef %1959, i32 noundef %1960)
  br label %1961

1961:                                             ; preds = %1958
  %1962 = load ptr, ptr %4, align 8
  %1963 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1962, i32 0, i32 3
  %1964 = load ptr, ptr %1963, align 8
  store ptr %1964, ptr %8, align 8
  %1965 = load ptr, ptr %4, align 8
  %1966 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1965, i32 0, i32 4
  %1967 = load i32, ptr %1966, align 8
  store i32 %1967, ptr %10, align 4
  %1968 = load ptr, ptr %4, align 8
  %1969 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1968, i32 0, i32 0
  %1970 = load ptr, ptr %1969, align 8
  store ptr %1970, ptr %7, align 8
  %1971 = load ptr, ptr %4, align 8
  %1972 = getelementptr inbounds nuw %struct.z_stream_s, ptr %1971, i32 0, i32 1
  %1973 = load i32, ptr %1972, align 8
  store i32 %1973, ptr %9, align 4
  %1974 = load ptr, ptr %6, align 8
  %1975 = getelementptr inbounds nuw %struct.inflate_state, ptr %1974, i32 0, i32 15
  %1976 = load i64, ptr %1975, align 8
  store i64 %1976, ptr %11, align 8
  %1977 = load ptr, ptr %6, align 8
  %1978 = getelementptr inbounds nuw %struct.inflate_state, ptr %1977, i32 0, i32 16
  %1979 = load i32, ptr %1978, align 8
  store i32 %1979, ptr %12, align 4
  br label %1980

1980:                                             ; preds = %1961
  %1981 = load ptr, ptr %6, align 8
  %1982 = getelementptr inbounds nuw %struct.inflate_state, ptr %1981, i32 0, i32 1
  %1983 = load i32, ptr %1982, align 8
  %1984 = icmp eq i32 %1983, 16191
  br i1 %1984, label %1985, label %1988

1985:                                             ; preds = %1980
  %1986 = load ptr, ptr %6, align 8
  %1987 = getelementptr inbounds nuw %struct.inflate_state, ptr %1986, i32 0, i32 33
  store i32 -1, ptr %1987, align 4
  br label %1988

1988:                                             ; preds = %1985, %1980
  br label %2839

1989:                                             ; preds = %1935, %1932
  %1990 = load ptr, ptr %6, align 8
  %1991 = getelementptr inbounds nuw %struct.inflate_state, ptr %1990, i32 0, i32 33
  store i32 0, ptr %1991, align 4
  br label %1992

1992:                                             ; preds = %2031, %1989
  %1993 = load ptr, ptr %6, align 8
  %1994 = getelementptr inbounds nuw %struct.inflate_state, ptr %1993, i32 0, i32 20
  %1995 = load ptr, ptr %1994, align 8
  %1996 = load i64, ptr %11, align 8
  %1997 = trunc i64 %1996 to i32
  %1998 = load ptr, ptr %6, align 8
  %1999 = getelementptr inbounds nuw %struct.inflate_state, ptr %1998, i32 0, i32 22
  %2000 = load i32, ptr %1999, align 8
  %2001 = shl i32 1, %2000
  %2002 = sub i32 %2001, 1
  %2003 = and i32 %1997, %2002
  %2004 = zext i32 %2003 to i64
  %2005 = getelementptr inbounds nuw %struct.code, ptr %1995, i64 %2004
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %17, ptr align 2 %2005, i64 4, i1 false)
  %2006 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2007 = load i8, ptr %2006, align 1
  %2008 = zext i8 %2007 to i32
  %2009 = load i32, ptr %12, align 4
  %2010 = icmp ule i32 %2008, %2009
  br i1 %2010, label %2011, label %2012

2011:                                             ; preds = %1992
  br label %2032

2012:                                             ; preds = %1992
  br label %2013

2013:                                             ; preds = %2012
  %2014 = load i32, ptr %9, align 4
  %2015 = icmp eq i32 %2014, 0
  br i1 %2015, label %2016, label %2017

2016:                                             ; preds = %2013
  br label %2840

2017:                                             ; preds = %2013
  %2018 = load i32, ptr %9, align 4
  %2019 = add i32 %2018, -1
  store i32 %2019, ptr %9, align 4
  %2020 = load ptr, ptr %7, align 8
  %2021 = getelementptr inbounds nuw i8, ptr %2020, i32 1
  store ptr %2021, ptr %7, align 8
  %2022 = load i8, ptr %2020, align 1
  %2023 = zext i8 %2022 to i64
  %2024 = load i32, ptr %12, align 4
  %2025 = zext i32 %2024 to i64
  %2026 = shl i64 %2023, %2025
  %2027 = load i64, ptr %11, align 8
  %2028 = add i64 %2027, %2026
  store i64 %2028, ptr %11, align 8
  %2029 = load i32, ptr %12, align 4
  %2030 = add i32 %2029, 8
  store i32 %2030, ptr %12, align 4
  br label %2031

2031:                                             ; preds = %2017
  br label %1992

2032:                                             ; preds = %2011
  %2033 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2034 = load i8, ptr %2033, align 2
  %2035 = zext i8 %2034 to i32
  %2036 = icmp ne i32 %2035, 0
  br i1 %2036, label %2037, label %2121

2037:                                             ; preds = %2032
  %2038 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2039 = load i8, ptr %2038, align 2
  %2040 = zext i8 %2039 to i32
  %2041 = and i32 %2040, 240
  %2042 = icmp eq i32 %2041, 0
  br i1 %2042, label %2043, label %2121

2043:                                             ; preds = %2037
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %18, ptr align 2 %17, i64 4, i1 false)
  br label %2044

2044:                                             ; preds = %2099, %2043
  %2045 = load ptr, ptr %6, align 8
  %2046 = getelementptr inbounds nuw %struct.inflate_state, ptr %2045, i32 0, i32 20
  %2047 = load ptr, ptr %2046, align 8
  %2048 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 2
  %2049 = load i16, ptr %2048, align 2
  %2050 = zext i16 %2049 to i32
  %2051 = load i64, ptr %11, align 8
  %2052 = trunc i64 %2051 to i32
  %2053 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2054 = load i8, ptr %2053, align 1
  %2055 = zext i8 %2054 to i32
  %2056 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 0
  %2057 = load i8, ptr %2056, align 2
  %2058 = zext i8 %2057 to i32
  %2059 = add nsw i32 %2055, %2058
  %2060 = shl i32 1, %2059
  %2061 = sub i32 %2060, 1
  %2062 = and i32 %2052, %2061
  %2063 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2064 = load i8, ptr %2063, align 1
  %2065 = zext i8 %2064 to i32
  %2066 = lshr i32 %2062, %2065
  %2067 = add i32 %2050, %2066
  %2068 = zext i32 %2067 to i64
  %2069 = getelementptr inbounds nuw %struct.code, ptr %2047, i64 %2068
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %17, ptr align 2 %2069, i64 4, i1 false)
  %2070 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2071 = load i8, ptr %2070, align 1
  %2072 = zext i8 %2071 to i32
  %2073 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2074 = load i8, ptr %2073, align 1
  %2075 = zext i8 %2074 to i32
  %2076 = add nsw i32 %2072, %2075
  %2077 = load i32, ptr %12, align 4
  %2078 = icmp ule i32 %2076, %2077
  br i1 %2078, label %2079, label %2080

2079:                                             ; preds = %2044
  br label %2100

2080:                                             ; preds = %2044
  br label %2081

2081:                                             ; preds = %2080
  %2082 = load i32, ptr %9, align 4
  %2083 = icmp eq i32 %2082, 0
  br i1 %2083, label %2084, label %2085

2084:                                             ; preds = %2081
  br label %2840

2085:                                             ; preds = %2081
  %2086 = load i32, ptr %9, align 4
  %2087 = add i32 %2086, -1
  store i32 %2087, ptr %9, align 4
  %2088 = load ptr, ptr %7, align 8
  %2089 = getelementptr inbounds nuw i8, ptr %2088, i32 1
  store ptr %2089, ptr %7, align 8
  %2090 = load i8, ptr %2088, align 1
  %2091 = zext i8 %2090 to i64
  %2092 = load i32, ptr %12, align 4
  %2093 = zext i32 %2092 to i64
  %2094 = shl i64 %2091, %2093
  %2095 = load i64, ptr %11, align 8
  %2096 = add i64 %2095, %2094
  store i64 %2096, ptr %11, align 8
  %2097 = load i32, ptr %12, align 4
  %2098 = add i32 %2097, 8
  store i32 %2098, ptr %12, align 4
  br label %2099

2099:                                             ; preds = %2085
  br label %2044

2100:                                             ; preds = %2079
  br label %2101

2101:                                             ; preds = %2100
  %2102 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2103 = load i8, ptr %2102, align 1
  %2104 = zext i8 %2103 to i32
  %2105 = load i64, ptr %11, align 8
  %2106 = zext i32 %2104 to i64
  %2107 = lshr i64 %2105, %2106
  store i64 %2107, ptr %11, align 8
  %2108 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2109 = load i8, ptr %2108, align 1
  %2110 = zext i8 %2109 to i32
  %2111 = load i32, ptr %12, align 4
  %2112 = sub i32 %2111, %2110
  store i32 %2112, ptr %12, align 4
  br label %2113

2113:                                             ; preds = %2101
  %2114 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2115 = load i8, ptr %2114, align 1
  %2116 = zext i8 %2115 to i32
  %2117 = load ptr, ptr %6, align 8
  %2118 = getelementptr inbounds nuw %struct.inflate_state, ptr %2117, i32 0, i32 33
  %2119 = load i32, ptr %2118, align 4
  %2120 = add nsw i32 %2119, %2116
  store i32 %2120, ptr %2118, align 4
  br label %2121

2121:                                             ; preds = %2113, %2037, %2032
  br label %2122

2122:                                             ; preds = %2121
  %2123 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2124 = load i8, ptr %2123, align 1
  %2125 = zext i8 %2124 to i32
  %2126 = load i64, ptr %11, align 8
  %2127 = zext i32 %2125 to i64
  %2128 = lshr i64 %2126, %2127
  store i64 %2128, ptr %11, align 8
  %2129 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2130 = load i8, ptr %2129, align 1
  %2131 = zext i8 %2130 to i32
  %2132 = load i32, ptr %12, align 4
  %2133 = sub i32 %2132, %2131
  store i32 %2133, ptr %12, align 4
  br label %2134

2134:                                             ; preds = %2122
  %2135 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2136 = load i8, ptr %2135, align 1
  %2137 = zext i8 %2136 to i32
  %2138 = load ptr, ptr %6, align 8
  %2139 = getelementptr inbounds nuw %struct.inflate_state, ptr %2138, i32 0, i32 33
  %2140 = load i32, ptr %2139, align 4
  %2141 = add nsw i32 %2140, %2137
  store i32 %2141, ptr %2139, align 4
  %2142 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %2143 = load i16, ptr %2142, align 2
  %2144 = zext i16 %2143 to i32
  %2145 = load ptr, ptr %6, align 8
  %2146 = getelementptr inbounds nuw %struct.inflate_state, ptr %2145, i32 0, i32 17
  store i32 %2144, ptr %2146, align 4
  %2147 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2148 = load i8, ptr %2147, align 2
  %2149 = zext i8 %2148 to i32
  %2150 = icmp eq i32 %2149, 0
  br i1 %2150, label %2151, label %2154

2151:                                             ; preds = %2134
  %2152 = load ptr, ptr %6, align 8
  %2153 = getelementptr inbounds nuw %struct.inflate_state, ptr %2152, i32 0, i32 1
  store i32 16205, ptr %2153, align 8
  br label %2839

2154:                                             ; preds = %2134
  %2155 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2156 = load i8, ptr %2155, align 2
  %2157 = zext i8 %2156 to i32
  %2158 = and i32 %2157, 32
  %2159 = icmp ne i32 %2158, 0
  br i1 %2159, label %2160, label %2165

2160:                                             ; preds = %2154
  %2161 = load ptr, ptr %6, align 8
  %2162 = getelementptr inbounds nuw %struct.inflate_state, ptr %2161, i32 0, i32 33
  store i32 -1, ptr %2162, align 4
  %2163 = load ptr, ptr %6, align 8
  %2164 = getelementptr inbounds nuw %struct.inflate_state, ptr %2163, i32 0, i32 1
  store i32 16191, ptr %2164, align 8
  br label %2839

2165:                                             ; preds = %2154
  %2166 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2167 = load i8, ptr %2166, align 2
  %2168 = zext i8 %2167 to i32
  %2169 = and i32 %2168, 64
  %2170 = icmp ne i32 %2169, 0
  br i1 %2170, label %2171, label %2176

2171:                                             ; preds = %2165
  %2172 = load ptr, ptr %4, align 8
  %2173 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2172, i32 0, i32 6
  store ptr @.str.14, ptr %2173, align 8
  %2174 = load ptr, ptr %6, align 8
  %2175 = getelementptr inbounds nuw %struct.inflate_state, ptr %2174, i32 0, i32 1
  store i32 16209, ptr %2175, align 8
  br label %2839

2176:                                             ; preds = %2165
  %2177 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2178 = load i8, ptr %2177, align 2
  %2179 = zext i8 %2178 to i32
  %2180 = and i32 %2179, 15
  %2181 = load ptr, ptr %6, align 8
  %2182 = getelementptr inbounds nuw %struct.inflate_state, ptr %2181, i32 0, i32 19
  store i32 %2180, ptr %2182, align 4
  %2183 = load ptr, ptr %6, align 8
  %2184 = getelementptr inbounds nuw %struct.inflate_state, ptr %2183, i32 0, i32 1
  store i32 16201, ptr %2184, align 8
  br label %2185

2185:                                             ; preds = %75, %2176
  %2186 = load ptr, ptr %6, align 8
  %2187 = getelementptr inbounds nuw %struct.inflate_state, ptr %2186, i32 0, i32 19
  %2188 = load i32, ptr %2187, align 4
  %2189 = icmp ne i32 %2188, 0
  br i1 %2189, label %2190, label %2252

2190:                                             ; preds = %2185
  br label %2191

2191:                                             ; preds = %2190
  br label %2192

2192:                                             ; preds = %2217, %2191
  %2193 = load i32, ptr %12, align 4
  %2194 = load ptr, ptr %6, align 8
  %2195 = getelementptr inbounds nuw %struct.inflate_state, ptr %2194, i32 0, i32 19
  %2196 = load i32, ptr %2195, align 4
  %2197 = icmp ult i32 %2193, %2196
  br i1 %2197, label %2198, label %2218

2198:                                             ; preds = %2192
  br label %2199

2199:                                             ; preds = %2198
  %2200 = load i32, ptr %9, align 4
  %2201 = icmp eq i32 %2200, 0
  br i1 %2201, label %2202, label %2203

2202:                                             ; preds = %2199
  br label %2840

2203:                                             ; preds = %2199
  %2204 = load i32, ptr %9, align 4
  %2205 = add i32 %2204, -1
  store i32 %2205, ptr %9, align 4
  %2206 = load ptr, ptr %7, align 8
  %2207 = getelementptr inbounds nuw i8, ptr %2206, i32 1
  store ptr %2207, ptr %7, align 8
  %2208 = load i8, ptr %2206, align 1
  %2209 = zext i8 %2208 to i64
  %2210 = load i32, ptr %12, align 4
  %2211 = zext i32 %2210 to i64
  %2212 = shl i64 %2209, %2211
  %2213 = load i64, ptr %11, align 8
  %2214 = add i64 %2213, %2212
  store i64 %2214, ptr %11, align 8
  %2215 = load i32, ptr %12, align 4
  %2216 = add i32 %2215, 8
  store i32 %2216, ptr %12, align 4
  br label %2217

2217:                                             ; preds = %2203
  br label %2192, !llvm.loop !26

2218:                                             ; preds = %2192
  br label %2219

2219:                                             ; preds = %2218
  %2220 = load i64, ptr %11, align 8
  %2221 = trunc i64 %2220 to i32
  %2222 = load ptr, ptr %6, align 8
  %2223 = getelementptr inbounds nuw %struct.inflate_state, ptr %2222, i32 0, i32 19
  %2224 = load i32, ptr %2223, align 4
  %2225 = shl i32 1, %2224
  %2226 = sub i32 %2225, 1
  %2227 = and i32 %2221, %2226
  %2228 = load ptr, ptr %6, align 8
  %2229 = getelementptr inbounds nuw %struct.inflate_state, ptr %2228, i32 0, i32 17
  %2230 = load i32, ptr %2229, align 4
  %2231 = add i32 %2230, %2227
  store i32 %2231, ptr %2229, align 4
  br label %2232

2232:                                             ; preds = %2219
  %2233 = load ptr, ptr %6, align 8
  %2234 = getelementptr inbounds nuw %struct.inflate_state, ptr %2233, i32 0, i32 19
  %2235 = load i32, ptr %2234, align 4
  %2236 = load i64, ptr %11, align 8
  %2237 = zext i32 %2235 to i64
  %2238 = lshr i64 %2236, %2237
  store i64 %2238, ptr %11, align 8
  %2239 = load ptr, ptr %6, align 8
  %2240 = getelementptr inbounds nuw %struct.inflate_state, ptr %2239, i32 0, i32 19
  %2241 = load i32, ptr %2240, align 4
  %2242 = load i32, ptr %12, align 4
  %2243 = sub i32 %2242, %2241
  store i32 %2243, ptr %12, align 4
  br label %2244

2244:                                             ; preds = %2232
  %2245 = load ptr, ptr %6, align 8
  %2246 = getelementptr inbounds nuw %struct.inflate_state, ptr %2245, i32 0, i32 19
  %2247 = load i32, ptr %2246, align 4
  %2248 = load ptr, ptr %6, align 8
  %2249 = getelementptr inbounds nuw %struct.inflate_state, ptr %2248, i32 0, i32 33
  %2250 = load i32, ptr %2249, align 4
  %2251 = add i32 %2250, %2247
  store i32 %2251, ptr %2249, align 4
  br label %2252

2252:                                             ; preds = %2244, %2185
  %2253 = load ptr, ptr %6, align 8
  %2254 = getelementptr inbounds nuw %struct.inflate_state, ptr %2253, i32 0, i32 17
  %2255 = load i32, ptr %2254, align 4
  %2256 = load ptr, ptr %6, align 8
  %2257 = getelementptr inbounds nuw %struct.inflate_state, ptr %2256, i32 0, i32 34
  store i32 %2255, ptr %2257, align 8
  %2258 = load ptr, ptr %6, align 8
  %2259 = getelementptr inbounds nuw %struct.inflate_state, ptr %2258, i32 0, i32 1
  store i32 16202, ptr %2259, align 8
  br label %2260

2260:                                             ; preds = %75, %2252
  br label %2261

2261:                                             ; preds = %2300, %2260
  %2262 = load ptr, ptr %6, align 8
  %2263 = getelementptr inbounds nuw %struct.inflate_state, ptr %2262, i32 0, i32 21
  %2264 = load ptr, ptr %2263, align 8
  %2265 = load i64, ptr %11, align 8
  %2266 = trunc i64 %2265 to i32
  %2267 = load ptr, ptr %6, align 8
  %2268 = getelementptr inbounds nuw %struct.inflate_state, ptr %2267, i32 0, i32 23
  %2269 = load i32, ptr %2268, align 4
  %2270 = shl i32 1, %2269
  %2271 = sub i32 %2270, 1
  %2272 = and i32 %2266, %2271
  %2273 = zext i32 %2272 to i64
  %2274 = getelementptr inbounds nuw %struct.code, ptr %2264, i64 %2273
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %17, ptr align 2 %2274, i64 4, i1 false)
  %2275 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2276 = load i8, ptr %2275, align 1
  %2277 = zext i8 %2276 to i32
  %2278 = load i32, ptr %12, align 4
  %2279 = icmp ule i32 %2277, %2278
  br i1 %2279, label %2280, label %2281

2280:                                             ; preds = %2261
  br label %2301

2281:                                             ; preds = %2261
  br label %2282

2282:                                             ; preds = %2281
  %2283 = load i32, ptr %9, align 4
  %2284 = icmp eq i32 %2283, 0
  br i1 %2284, label %2285, label %2286

2285:                                             ; preds = %2282
  br label %2840

2286:                                             ; preds = %2282
  %2287 = load i32, ptr %9, align 4
  %2288 = add i32 %2287, -1
  store i32 %2288, ptr %9, align 4
  %2289 = load ptr, ptr %7, align 8
  %2290 = getelementptr inbounds nuw i8, ptr %2289, i32 1
  store ptr %2290, ptr %7, align 8
  %2291 = load i8, ptr %2289, align 1
  %2292 = zext i8 %2291 to i64
  %2293 = load i32, ptr %12, align 4
  %2294 = zext i32 %2293 to i64
  %2295 = shl i64 %2292, %2294
  %2296 = load i64, ptr %11, align 8
  %2297 = add i64 %2296, %2295
  store i64 %2297, ptr %11, align 8
  %2298 = load i32, ptr %12, align 4
  %2299 = add i32 %2298, 8
  store i32 %2299, ptr %12, align 4
  br label %2300

2300:                                             ; preds = %2286
  br label %2261

2301:                                             ; preds = %2280
  %2302 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2303 = load i8, ptr %2302, align 2
  %2304 = zext i8 %2303 to i32
  %2305 = and i32 %2304, 240
  %2306 = icmp eq i32 %2305, 0
  br i1 %2306, label %2307, label %2385

2307:                                             ; preds = %2301
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %18, ptr align 2 %17, i64 4, i1 false)
  br label %2308

2308:                                             ; preds = %2363, %2307
  %2309 = load ptr, ptr %6, align 8
  %2310 = getelementptr inbounds nuw %struct.inflate_state, ptr %2309, i32 0, i32 21
  %2311 = load ptr, ptr %2310, align 8
  %2312 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 2
  %2313 = load i16, ptr %2312, align 2
  %2314 = zext i16 %2313 to i32
  %2315 = load i64, ptr %11, align 8
  %2316 = trunc i64 %2315 to i32
  %2317 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2318 = load i8, ptr %2317, align 1
  %2319 = zext i8 %2318 to i32
  %2320 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 0
  %2321 = load i8, ptr %2320, align 2
  %2322 = zext i8 %2321 to i32
  %2323 = add nsw i32 %2319, %2322
  %2324 = shl i32 1, %2323
  %2325 = sub i32 %2324, 1
  %2326 = and i32 %2316, %2325
  %2327 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2328 = load i8, ptr %2327, align 1
  %2329 = zext i8 %2328 to i32
  %2330 = lshr i32 %2326, %2329
  %2331 = add i32 %2314, %2330
  %2332 = zext i32 %2331 to i64
  %2333 = getelementptr inbounds nuw %struct.code, ptr %2311, i64 %2332
  call void @llvm.memcpy.p0.p0.i64(ptr align 2 %17, ptr align 2 %2333, i64 4, i1 false)
  %2334 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2335 = load i8, ptr %2334, align 1
  %2336 = zext i8 %2335 to i32
  %2337 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2338 = load i8, ptr %2337, align 1
  %2339 = zext i8 %2338 to i32
  %2340 = add nsw i32 %2336, %2339
  %2341 = load i32, ptr %12, align 4
  %2342 = icmp ule i32 %2340, %2341
  br i1 %2342, label %2343, label %2344

2343:                                             ; preds = %2308
  br label %2364

2344:                                             ; preds = %2308
  br label %2345

2345:                                             ; preds = %2344
  %2346 = load i32, ptr %9, align 4
  %2347 = icmp eq i32 %2346, 0
  br i1 %2347, label %2348, label %2349

2348:                                             ; preds = %2345
  br label %2840

2349:                                             ; preds = %2345
  %2350 = load i32, ptr %9, align 4
  %2351 = add i32 %2350, -1
  store i32 %2351, ptr %9, align 4
  %2352 = load ptr, ptr %7, align 8
  %2353 = getelementptr inbounds nuw i8, ptr %2352, i32 1
  store ptr %2353, ptr %7, align 8
  %2354 = load i8, ptr %2352, align 1
  %2355 = zext i8 %2354 to i64
  %2356 = load i32, ptr %12, align 4
  %2357 = zext i32 %2356 to i64
  %2358 = shl i64 %2355, %2357
  %2359 = load i64, ptr %11, align 8
  %2360 = add i64 %2359, %2358
  store i64 %2360, ptr %11, align 8
  %2361 = load i32, ptr %12, align 4
  %2362 = add i32 %2361, 8
  store i32 %2362, ptr %12, align 4
  br label %2363

2363:                                             ; preds = %2349
  br label %2308

2364:                                             ; preds = %2343
  br label %2365

2365:                                             ; preds = %2364
  %2366 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2367 = load i8, ptr %2366, align 1
  %2368 = zext i8 %2367 to i32
  %2369 = load i64, ptr %11, align 8
  %2370 = zext i32 %2368 to i64
  %2371 = lshr i64 %2369, %2370
  store i64 %2371, ptr %11, align 8
  %2372 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2373 = load i8, ptr %2372, align 1
  %2374 = zext i8 %2373 to i32
  %2375 = load i32, ptr %12, align 4
  %2376 = sub i32 %2375, %2374
  store i32 %2376, ptr %12, align 4
  br label %2377

2377:                                             ; preds = %2365
  %2378 = getelementptr inbounds nuw %struct.code, ptr %18, i32 0, i32 1
  %2379 = load i8, ptr %2378, align 1
  %2380 = zext i8 %2379 to i32
  %2381 = load ptr, ptr %6, align 8
  %2382 = getelementptr inbounds nuw %struct.inflate_state, ptr %2381, i32 0, i32 33
  %2383 = load i32, ptr %2382, align 4
  %2384 = add nsw i32 %2383, %2380
  store i32 %2384, ptr %2382, align 4
  br label %2385

2385:                                             ; preds = %2377, %2301
  br label %2386

2386:                                             ; preds = %2385
  %2387 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2388 = load i8, ptr %2387, align 1
  %2389 = zext i8 %2388 to i32
  %2390 = load i64, ptr %11, align 8
  %2391 = zext i32 %2389 to i64
  %2392 = lshr i64 %2390, %2391
  store i64 %2392, ptr %11, align 8
  %2393 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2394 = load i8, ptr %2393, align 1
  %2395 = zext i8 %2394 to i32
  %2396 = load i32, ptr %12, align 4
  %2397 = sub i32 %2396, %2395
  store i32 %2397, ptr %12, align 4
  br label %2398

2398:                                             ; preds = %2386
  %2399 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 1
  %2400 = load i8, ptr %2399, align 1
  %2401 = zext i8 %2400 to i32
  %2402 = load ptr, ptr %6, align 8
  %2403 = getelementptr inbounds nuw %struct.inflate_state, ptr %2402, i32 0, i32 33
  %2404 = load i32, ptr %2403, align 4
  %2405 = add nsw i32 %2404, %2401
  store i32 %2405, ptr %2403, align 4
  %2406 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2407 = load i8, ptr %2406, align 2
  %2408 = zext i8 %2407 to i32
  %2409 = and i32 %2408, 64
  %2410 = icmp ne i32 %2409, 0
  br i1 %2410, label %2411, label %2416

2411:                                             ; preds = %2398
  %2412 = load ptr, ptr %4, align 8
  %2413 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2412, i32 0, i32 6
  store ptr @.str.15, ptr %2413, align 8
  %2414 = load ptr, ptr %6, align 8
  %2415 = getelementptr inbounds nuw %struct.inflate_state, ptr %2414, i32 0, i32 1
  store i32 16209, ptr %2415, align 8
  br label %2839

2416:                                             ; preds = %2398
  %2417 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 2
  %2418 = load i16, ptr %2417, align 2
  %2419 = zext i16 %2418 to i32
  %2420 = load ptr, ptr %6, align 8
  %2421 = getelementptr inbounds nuw %struct.inflate_state, ptr %2420, i32 0, i32 18
  store i32 %2419, ptr %2421, align 8
  %2422 = getelementptr inbounds nuw %struct.code, ptr %17, i32 0, i32 0
  %2423 = load i8, ptr %2422, align 2
  %2424 = zext i8 %2423 to i32
  %2425 = and i32 %2424, 15
  %2426 = load ptr, ptr %6, align 8
  %2427 = getelementptr inbounds nuw %struct.inflate_state, ptr %2426, i32 0, i32 19
  store i32 %2425, ptr %2427, align 4
  %2428 = load ptr, ptr %6, align 8
  %2429 = getelementptr inbounds nuw %struct.inflate_state, ptr %2428, i32 0, i32 1
  store i32 16203, ptr %2429, align 8
  br label %2430

2430:                                             ; preds = %75, %2416
  %2431 = load ptr, ptr %6, align 8
  %2432 = getelementptr inbounds nuw %struct.inflate_state, ptr %2431, i32 0, i32 19
  %2433 = load i32, ptr %2432, align 4
  %2434 = icmp ne i32 %2433, 0
  br i1 %2434, label %2435, label %2497

2435:                                             ; preds = %2430
  br label %2436

2436:                                             ; preds = %2435
  br label %2437

2437:                                             ; preds = %2462, %2436
  %2438 = load i32, ptr %12, align 4
  %2439 = load ptr, ptr %6, align 8
  %2440 = getelementptr inbounds nuw %struct.inflate_state, ptr %2439, i32 0, i32 19
  %2441 = load i32, ptr %2440, align 4
  %2442 = icmp ult i32 %2438, %2441
  br i1 %2442, label %2443, label %2463

2443:                                             ; preds = %2437
  br label %2444

2444:                                             ; preds = %2443
  %2445 = load i32, ptr %9, align 4
  %2446 = icmp eq i32 %2445, 0
  br i1 %2446, label %2447, label %2448

2447:                                             ; preds = %2444
  br label %2840

2448:                                             ; preds = %2444
  %2449 = load i32, ptr %9, align 4
  %2450 = add i32 %2449, -1
  store i32 %2450, ptr %9, align 4
  %2451 = load ptr, ptr %7, align 8
  %2452 = getelementptr inbounds nuw i8, ptr %2451, i32 1
  store ptr %2452, ptr %7, align 8
  %2453 = load i8, ptr %2451, align 1
  %2454 = zext i8 %2453 to i64
  %2455 = load i32, ptr %12, align 4
  %2456 = zext i32 %2455 to i64
  %2457 = shl i64 %2454, %2456
  %2458 = load i64, ptr %11, align 8
  %2459 = add i64 %2458, %2457
  store i64 %2459, ptr %11, align 8
  %2460 = load i32, ptr %12, align 4
  %2461 = add i32 %2460, 8
  store i32 %2461, ptr %12, align 4
  br label %2462

2462:                                             ; preds = %2448
  br label %2437, !llvm.loop !27

2463:                                             ; preds = %2437
  br label %2464

2464:                                             ; preds = %2463
  %2465 = load i64, ptr %11, align 8
  %2466 = trunc i64 %2465 to i32
  %2467 = load ptr, ptr %6, align 8
  %2468 = getelementptr inbounds nuw %struct.inflate_state, ptr %2467, i32 0, i32 19
  %2469 = load i32, ptr %2468, align 4
  %2470 = shl i32 1, %2469
  %2471 = sub i32 %2470, 1
  %2472 = and i32 %2466, %2471
  %2473 = load ptr, ptr %6, align 8
  %2474 = getelementptr inbounds nuw %struct.inflate_state, ptr %2473, i32 0, i32 18
  %2475 = load i32, ptr %2474, align 8
  %2476 = add i32 %2475, %2472
  store i32 %2476, ptr %2474, align 8
  br label %2477

2477:                                             ; preds = %2464
  %2478 = load ptr, ptr %6, align 8
  %2479 = getelementptr inbounds nuw %struct.inflate_state, ptr %2478, i32 0, i32 19
  %2480 = load i32, ptr %2479, align 4
  %2481 = load i64, ptr %11, align 8
  %2482 = zext i32 %2480 to i64
  %2483 = lshr i64 %2481, %2482
  store i64 %2483, ptr %11, align 8
  %2484 = load ptr, ptr %6, align 8
  %2485 = getelementptr inbounds nuw %struct.inflate_state, ptr %2484, i32 0, i32 19
  %2486 = load i32, ptr %2485, align 4
  %2487 = load i32, ptr %12, align 4
  %2488 = sub i32 %2487, %2486
  store i32 %2488, ptr %12, align 4
  br label %2489

2489:                                             ; preds = %2477
  %2490 = load ptr, ptr %6, align 8
  %2491 = getelementptr inbounds nuw %struct.inflate_state, ptr %2490, i32 0, i32 19
  %2492 = load i32, ptr %2491, align 4
  %2493 = load ptr, ptr %6, align 8
  %2494 = getelementptr inbounds nuw %struct.inflate_state, ptr %2493, i32 0, i32 33
  %2495 = load i32, ptr %2494, align 4
  %2496 = add i32 %2495, %2492
  store i32 %2496, ptr %2494, align 4
  br label %2497

2497:                                             ; preds = %2489, %2430
  %2498 = load ptr, ptr %6, align 8
  %2499 = getelementptr inbounds nuw %struct.inflate_state, ptr %2498, i32 0, i32 1
  store i32 16204, ptr %2499, align 8
  br label %2500

2500:                                             ; preds = %75, %2497
  %2501 = load i32, ptr %10, align 4
  %2502 = icmp eq i32 %2501, 0
  br i1 %2502, label %2503, label %2504

2503:                                             ; preds = %2500
  br label %2840

2504:                                             ; preds = %2500
  %2505 = load i32, ptr %14, align 4
  %2506 = load i32, ptr %10, align 4
  %2507 = sub i32 %2505, %2506
  store i32 %2507, ptr %15, align 4
  %2508 = load ptr, ptr %6, align 8
  %2509 = getelementptr inbounds nuw %struct.inflate_state, ptr %2508, i32 0, i32 18
  %2510 = load i32, ptr %2509, align 8
  %2511 = load i32, ptr %15, align 4
  %2512 = icmp ugt i32 %2510, %2511
  br i1 %2512, label %2513, label %2579

2513:                                             ; preds = %2504
  %2514 = load ptr, ptr %6, align 8
  %2515 = getelementptr inbounds nuw %struct.inflate_state, ptr %2514, i32 0, i32 18
  %2516 = load i32, ptr %2515, align 8
  %2517 = load i32, ptr %15, align 4
  %2518 = sub i32 %2516, %2517
  store i32 %2518, ptr %15, align 4
  %2519 = load i32, ptr %15, align 4
  %2520 = load ptr, ptr %6, align 8
  %2521 = getelementptr inbounds nuw %struct.inflate_state, ptr %2520, i32 0, i32 12
  %2522 = load i32, ptr %2521, align 8
  %2523 = icmp ugt i32 %2519, %2522
  br i1 %2523, label %2524, label %2535

2524:                                             ; preds = %2513
  %2525 = load ptr, ptr %6, align 8
  %2526 = getelementptr inbounds nuw %struct.inflate_state, ptr %2525, i32 0, i32 32
  %2527 = load i32, ptr %2526, align 8
  %2528 = icmp ne i32 %2527, 0
  br i1 %2528, label %2529, label %2534

2529:                                             ; preds = %2524
  %2530 = load ptr, ptr %4, align 8
  %2531 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2530, i32 0, i32 6
  store ptr @.str.16, ptr %2531, align 8
  %2532 = load ptr, ptr %6, align 8
  %2533 = getelementptr inbounds nuw %struct.inflate_state, ptr %2532, i32 0, i32 1
  store i32 16209, ptr %2533, align 8
  br label %2839

2534:                                             ; preds = %2524
  br label %2535

2535:                                             ; preds = %2534, %2513
  %2536 = load i32, ptr %15, align 4
  %2537 = load ptr, ptr %6, align 8
  %2538 = getelementptr inbounds nuw %struct.inflate_state, ptr %2537, i32 0, i32 13
  %2539 = load i32, ptr %2538, align 4
  %2540 = icmp ugt i32 %2536, %2539
  br i1 %2540, label %2541, label %2557

2541:                                             ; preds = %2535
  %2542 = load ptr, ptr %6, align 8
  %2543 = getelementptr inbounds nuw %struct.inflate_state, ptr %2542, i32 0, i32 13
  %2544 = load i32, ptr %2543, align 4
  %2545 = load i32, ptr %15, align 4
  %2546 = sub i32 %2545, %2544
  store i32 %2546, ptr %15, align 4
  %2547 = load ptr, ptr %6, align 8
  %2548 = getelementptr inbounds nuw %struct.inflate_state, ptr %2547, i32 0, i32 14
  %2549 = load ptr, ptr %2548, align 8
  %2550 = load ptr, ptr %6, align 8
  %2551 = getelementptr inbounds nuw %struct.inflate_state, ptr %2550, i32 0, i32 11
  %2552 = load i32, ptr %2551, align 4
  %2553 = load i32, ptr %15, align 4
  %2554 = sub i32 %2552, %2553
  %2555 = zext i32 %2554 to i64
  %2556 = getelementptr inbounds nuw i8, ptr %2549, i64 %2555
  store ptr %2556, ptr %16, align 8
  br label %2568

2557:                                             ; preds = %2535
  %2558 = load ptr, ptr %6, align 8
  %2559 = getelementptr inbounds nuw %struct.inflate_state, ptr %2558, i32 0, i32 14
  %2560 = load ptr, ptr %2559, align 8
  %2561 = load ptr, ptr %6, align 8
  %2562 = getelementptr inbounds nuw %struct.inflate_state, ptr %2561, i32 0, i32 13
  %2563 = load i32, ptr %2562, align 4
  %2564 = load i32, ptr %15, align 4
  %2565 = sub i32 %2563, %2564
  %2566 = zext i32 %2565 to i64
  %2567 = getelementptr inbounds nuw i8, ptr %2560, i64 %2566
  store ptr %2567, ptr %16, align 8
  br label %2568

2568:                                             ; preds = %2557, %2541
  %2569 = load i32, ptr %15, align 4
  %2570 = load ptr, ptr %6, align 8
  %2571 = getelementptr inbounds nuw %struct.inflate_state, ptr %2570, i32 0, i32 17
  %2572 = load i32, ptr %2571, align 4
  %2573 = icmp ugt i32 %2569, %2572
  br i1 %2573, label %2574, label %2578

2574:                                             ; preds = %2568
  %2575 = load ptr, ptr %6, align 8
  %2576 = getelementptr inbounds nuw %struct.inflate_state, ptr %2575, i32 0, i32 17
  %2577 = load i32, ptr %2576, align 4
  store i32 %2577, ptr %15, align 4
  br label %2578

2578:                                             ; preds = %2574, %2568
  br label %2590

2579:                                             ; preds = %2504
  %2580 = load ptr, ptr %8, align 8
  %2581 = load ptr, ptr %6, align 8
  %2582 = getelementptr inbounds nuw %struct.inflate_state, ptr %2581, i32 0, i32 18
  %2583 = load i32, ptr %2582, align 8
  %2584 = zext i32 %2583 to i64
  %2585 = sub i64 0, %2584
  %2586 = getelementptr inbounds i8, ptr %2580, i64 %2585
  store ptr %2586, ptr %16, align 8
  %2587 = load ptr, ptr %6, align 8
  %2588 = getelementptr inbounds nuw %struct.inflate_state, ptr %2587, i32 0, i32 17
  %2589 = load i32, ptr %2588, align 4
  store i32 %2589, ptr %15, align 4
  br label %2590

2590:                                             ; preds = %2579, %2578
  %2591 = load i32, ptr %15, align 4
  %2592 = load i32, ptr %10, align 4
  %2593 = icmp ugt i32 %2591, %2592
  br i1 %2593, label %2594, label %2596

2594:                                             ; preds = %2590
  %2595 = load i32, ptr %10, align 4
  store i32 %2595, ptr %15, align 4
  br label %2596

2596:                                             ; preds = %2594, %2590
  %2597 = load i32, ptr %15, align 4
  %2598 = load i32, ptr %10, align 4
  %2599 = sub i32 %2598, %2597
  store i32 %2599, ptr %10, align 4
  %2600 = load i32, ptr %15, align 4
  %2601 = load ptr, ptr %6, align 8
  %2602 = getelementptr inbounds nuw %struct.inflate_state, ptr %2601, i32 0, i32 17
  %2603 = load i32, ptr %2602, align 4
  %2604 = sub i32 %2603, %2600
  store i32 %2604, ptr %2602, align 4
  br label %2605

2605:                                             ; preds = %2611, %2596
  %2606 = load ptr, ptr %16, align 8
  %2607 = getelementptr inbounds nuw i8, ptr %2606, i32 1
  store ptr %2607, ptr %16, align 8
  %2608 = load i8, ptr %2606, align 1
  %2609 = load ptr, ptr %8, align 8
  %2610 = getelementptr inbounds nuw i8, ptr %2609, i32 1
  store ptr %2610, ptr %8, align 8
  store i8 %2608, ptr %2609, align 1
  br label %2611

2611:                                             ; preds = %2605
  %2612 = load i32, ptr %15, align 4
  %2613 = add i32 %2612, -1
  store i32 %2613, ptr %15, align 4
  %2614 = icmp ne i32 %2613, 0
  br i1 %2614, label %2605, label %2615, !llvm.loop !28

2615:                                             ; preds = %2611
  %2616 = load ptr, ptr %6, align 8
  %2617 = getelementptr inbounds nuw %struct.inflate_state, ptr %2616, i32 0, i32 17
  %2618 = load i32, ptr %2617, align 4
  %2619 = icmp eq i32 %2618, 0
  br i1 %2619, label %2620, label %2623

2620:                                             ; preds = %2615
  %2621 = load ptr, ptr %6, align 8
  %2622 = getelementptr inbounds nuw %struct.inflate_state, ptr %2621, i32 0, i32 1
  store i32 16200, ptr %2622, align 8
  br label %2623

2623:                                             ; preds = %2620, %2615
  br label %2839

2624:                                             ; preds = %75
  %2625 = load i32, ptr %10, align 4
  %2626 = icmp eq i32 %2625, 0
  br i1 %2626, label %2627, label %2628

2627:                                             ; preds = %2624
  br label %2840

2628:                                             ; preds = %2624
  %2629 = load ptr, ptr %6, align 8
  %2630 = getelementptr inbounds nuw %struct.inflate_state, ptr %2629, i32 0, i32 17
  %2631 = load i32, ptr %2630, align 4
  %2632 = trunc i32 %2631 to i8
  %2633 = load ptr, ptr %8, align 8
  %2634 = getelementptr inbounds nuw i8, ptr %2633, i32 1
  store ptr %2634, ptr %8, align 8
  store i8 %2632, ptr %2633, align 1
  %2635 = load i32, ptr %10, align 4
  %2636 = add i32 %2635, -1
  store i32 %2636, ptr %10, align 4
  %2637 = load ptr, ptr %6, align 8
  %2638 = getelementptr inbounds nuw %struct.inflate_state, ptr %2637, i32 0, i32 1
  store i32 16200, ptr %2638, align 8
  br label %2839

2639:                                             ; preds = %75
  %2640 = load ptr, ptr %6, align 8
  %2641 = getelementptr inbounds nuw %struct.inflate_state, ptr %2640, i32 0, i32 3
  %2642 = load i32, ptr %2641, align 8
  %2643 = icmp ne i32 %2642, 0
  br i1 %2643, label %2644, label %2771

2644:                                             ; preds = %2639
  br label %2645

2645:                                             ; preds = %2644
  br label %2646

2646:                                             ; preds = %2668, %2645
  %2647 = load i32, ptr %12, align 4
  %2648 = icmp ult i32 %2647, 32
  br i1 %2648, label %2649, label %2669

2649:                                             ; preds = %2646
  br label %2650

2650:                                             ; preds = %2649
  %2651 = load i32, ptr %9, align 4
  %2652 = icmp eq i32 %2651, 0
  br i1 %2652, label %2653, label %2654

2653:                                             ; preds = %2650
  br label %2840

2654:                                             ; preds = %2650
  %2655 = load i32, ptr %9, align 4
  %2656 = add i32 %2655, -1
  store i32 %2656, ptr %9, align 4
  %2657 = load ptr, ptr %7, align 8
  %2658 = getelementptr inbounds nuw i8, ptr %2657, i32 1
  store ptr %2658, ptr %7, align 8
  %2659 = load i8, ptr %2657, align 1
  %2660 = zext i8 %2659 to i64
  %2661 = load i32, ptr %12, align 4
  %2662 = zext i32 %2661 to i64
  %2663 = shl i64 %2660, %2662
  %2664 = load i64, ptr %11, align 8
  %2665 = add i64 %2664, %2663
  store i64 %2665, ptr %11, align 8
  %2666 = load i32, ptr %12, align 4
  %2667 = add i32 %2666, 8
  store i32 %2667, ptr %12, align 4
  br label %2668

2668:                                             ; preds = %2654
  br label %2646, !llvm.loop !29

2669:                                             ; preds = %2646
  br label %2670

2670:                                             ; preds = %2669
  %2671 = load i32, ptr %10, align 4
  %2672 = load i32, ptr %14, align 4
  %2673 = sub i32 %2672, %2671
  store i32 %2673, ptr %14, align 4
  %2674 = load i32, ptr %14, align 4
  %2675 = zext i32 %2674 to i64
  %2676 = load ptr, ptr %4, align 8
  %2677 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2676, i32 0, i32 5
  %2678 = load i64, ptr %2677, align 8
  %2679 = add i64 %2678, %2675
  store i64 %2679, ptr %2677, align 8
  %2680 = load i32, ptr %14, align 4
  %2681 = zext i32 %2680 to i64
  %2682 = load ptr, ptr %6, align 8
  %2683 = getelementptr inbounds nuw %struct.inflate_state, ptr %2682, i32 0, i32 8
  %2684 = load i64, ptr %2683, align 8
  %2685 = add i64 %2684, %2681
  store i64 %2685, ptr %2683, align 8
  %2686 = load ptr, ptr %6, align 8
  %2687 = getelementptr inbounds nuw %struct.inflate_state, ptr %2686, i32 0, i32 3
  %2688 = load i32, ptr %2687, align 8
  %2689 = and i32 %2688, 4
  %2690 = icmp ne i32 %2689, 0
  br i1 %2690, label %2691, label %2727

2691:                                             ; preds = %2670
  %2692 = load i32, ptr %14, align 4
  %2693 = icmp ne i32 %2692, 0
  br i1 %2693, label %2694, label %2727

2694:                                             ; preds = %2691
  %2695 = load ptr, ptr %6, align 8
  %2696 = getelementptr inbounds nuw %struct.inflate_state, ptr %2695, i32 0, i32 5
  %2697 = load i32, ptr %2696, align 8
  %2698 = icmp ne i32 %2697, 0
  br i1 %2698, label %2699, label %2710

2699:                                             ; preds = %2694
  %2700 = load ptr, ptr %6, align 8
  %2701 = getelementptr inbounds nuw %struct.inflate_state, ptr %2700, i32 0, i32 7
  %2702 = load i64, ptr %2701, align 8
  %2703 = load ptr, ptr %8, align 8
  %2704 = load i32, ptr %14, align 4
  %2705 = zext i32 %2704 to i64
  %2706 = sub i64 0, %2705
  %2707 = getelementptr inbounds i8, ptr %2703, i64 %2706
  %2708 = load i32, ptr %14, align 4
  %2709 = call i64 @crc32(i64 noundef %2702, ptr noundef %2707, i32 noundef %2708)
  br label %2721

2710:                                             ; preds = %2694
  %2711 = load ptr, ptr %6, align 8
  %2712 = getelementptr inbounds nuw %struct.inflate_state, ptr %2711, i32 0, i32 7
  %2713 = load i64, ptr %2712, align 8
  %2714 = load ptr, ptr %8, align 8
  %2715 = load i32, ptr %14, align 4
  %2716 = zext i32 %2715 to i64
  %2717 = sub i64 0, %2716
  %2718 = getelementptr inbounds i8, ptr %2714, i64 %2717
  %2719 = load i32, ptr %14, align 4
  %2720 = call i64 @adler32(i64 noundef %2713, ptr noundef %2718, i32 noundef %2719)
  br label %2721

2721:                                             ; preds = %2710, %2699
  %2722 = phi i64 [ %2709, %2699 ], [ %2720, %2710 ]
  %2723 = load ptr, ptr %6, align 8
  %2724 = getelementptr inbounds nuw %struct.inflate_state, ptr %2723, i32 0, i32 7
  store i64 %2722, ptr %2724, align 8
  %2725 = load ptr, ptr %4, align 8
  %2726 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2725, i32 0, i32 12
  store i64 %2722, ptr %2726, align 8
  br label %2727

2727:                                             ; preds = %2721, %2691, %2670
  %2728 = load i32, ptr %10, align 4
  store i32 %2728, ptr %14, align 4
  %2729 = load ptr, ptr %6, align 8
  %2730 = getelementptr inbounds nuw %struct.inflate_state, ptr %2729, i32 0, i32 3
  %2731 = load i32, ptr %2730, align 8
  %2732 = and i32 %2731, 4
  %2733 = icmp ne i32 %2732, 0
  br i1 %2733, label %2734, label %2768

2734:                                             ; preds = %2727
  %2735 = load ptr, ptr %6, align 8
  %2736 = getelementptr inbounds nuw %struct.inflate_state, ptr %2735, i32 0, i32 5
  %2737 = load i32, ptr %2736, align 8
  %2738 = icmp ne i32 %2737, 0
  br i1 %2738, label %2739, label %2741

2739:                                             ; preds = %2734
  %2740 = load i64, ptr %11, align 8
  br label %2757

2741:                                             ; preds = %2734
  %2742 = load i64, ptr %11, align 8
  %2743 = lshr i64 %2742, 24
  %2744 = and i64 %2743, 255
  %2745 = load i64, ptr %11, align 8
  %2746 = lshr i64 %2745, 8
  %2747 = and i64 %2746, 65280
  %2748 = add i64 %2744, %2747
  %2749 = load i64, ptr %11, align 8
  %2750 = and i64 %2749, 65280
  %2751 = shl i64 %2750, 8
  %2752 = add i64 %2748, %2751
  %2753 = load i64, ptr %11, align 8
  %2754 = and i64 %2753, 255
  %2755 = shl i64 %2754, 24
  %2756 = add i64 %2752, %2755
  br label %2757

2757:                                             ; preds = %2741, %2739
  %2758 = phi i64 [ %2740, %2739 ], [ %2756, %2741 ]
  %2759 = load ptr, ptr %6, align 8
  %2760 = getelementptr inbounds nuw %struct.inflate_state, ptr %2759, i32 0, i32 7
  %2761 = load i64, ptr %2760, align 8
  %2762 = icmp ne i64 %2758, %2761
  br i1 %2762, label %2763, label %2768

2763:                                             ; preds = %2757
  %2764 = load ptr, ptr %4, align 8
  %2765 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2764, i32 0, i32 6
  store ptr @.str.17, ptr %2765, align 8
  %2766 = load ptr, ptr %6, align 8
  %2767 = getelementptr inbounds nuw %struct.inflate_state, ptr %2766, i32 0, i32 1
  store i32 16209, ptr %2767, align 8
  br label %2839

2768:                                             ; preds = %2757, %2727
  br label %2769

2769:                                             ; preds = %2768
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %2770

2770:                                             ; preds = %2769
  br label %2771

2771:                                             ; preds = %2770, %2639
  %2772 = load ptr, ptr %6, align 8
  %2773 = getelementptr inbounds nuw %struct.inflate_state, ptr %2772, i32 0, i32 1
  store i32 16207, ptr %2773, align 8
  br label %2774

2774:                                             ; preds = %75, %2771
  %2775 = load ptr, ptr %6, align 8
  %2776 = getelementptr inbounds nuw %struct.inflate_state, ptr %2775, i32 0, i32 3
  %2777 = load i32, ptr %2776, align 8
  %2778 = icmp ne i32 %2777, 0
  br i1 %2778, label %2779, label %2831

2779:                                             ; preds = %2774
  %2780 = load ptr, ptr %6, align 8
  %2781 = getelementptr inbounds nuw %struct.inflate_state, ptr %2780, i32 0, i32 5
  %2782 = load i32, ptr %2781, align 8
  %2783 = icmp ne i32 %2782, 0
  br i1 %2783, label %2784, label %2831

2784:                                             ; preds = %2779
  br label %2785

2785:                                             ; preds = %2784
  br label %2786

2786:                                             ; preds = %2808, %2785
  %2787 = load i32, ptr %12, align 4
  %2788 = icmp ult i32 %2787, 32
  br i1 %2788, label %2789, label %2809

2789:                                             ; preds = %2786
  br label %2790

2790:                                             ; preds = %2789
  %2791 = load i32, ptr %9, align 4
  %2792 = icmp eq i32 %2791, 0
  br i1 %2792, label %2793, label %2794

2793:                                             ; preds = %2790
  br label %2840

2794:                                             ; preds = %2790
  %2795 = load i32, ptr %9, align 4
  %2796 = add i32 %2795, -1
  store i32 %2796, ptr %9, align 4
  %2797 = load ptr, ptr %7, align 8
  %2798 = getelementptr inbounds nuw i8, ptr %2797, i32 1
  store ptr %2798, ptr %7, align 8
  %2799 = load i8, ptr %2797, align 1
  %2800 = zext i8 %2799 to i64
  %2801 = load i32, ptr %12, align 4
  %2802 = zext i32 %2801 to i64
  %2803 = shl i64 %2800, %2802
  %2804 = load i64, ptr %11, align 8
  %2805 = add i64 %2804, %2803
  store i64 %2805, ptr %11, align 8
  %2806 = load i32, ptr %12, align 4
  %2807 = add i32 %2806, 8
  store i32 %2807, ptr %12, align 4
  br label %2808

2808:                                             ; preds = %2794
  br label %2786, !llvm.loop !30

2809:                                             ; preds = %2786
  br label %2810

2810:                                             ; preds = %2809
  %2811 = load ptr, ptr %6, align 8
  %2812 = getelementptr inbounds nuw %struct.inflate_state, ptr %2811, i32 0, i32 3
  %2813 = load i32, ptr %2812, align 8
  %2814 = and i32 %2813, 4
  %2815 = icmp ne i32 %2814, 0
  br i1 %2815, label %2816, label %2828

2816:                                             ; preds = %2810
  %2817 = load i64, ptr %11, align 8
  %2818 = load ptr, ptr %6, align 8
  %2819 = getelementptr inbounds nuw %struct.inflate_state, ptr %2818, i32 0, i32 8
  %2820 = load i64, ptr %2819, align 8
  %2821 = and i64 %2820, 4294967295
  %2822 = icmp ne i64 %2817, %2821
  br i1 %2822, label %2823, label %2828

2823:                                             ; preds = %2816
  %2824 = load ptr, ptr %4, align 8
  %2825 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2824, i32 0, i32 6
  store ptr @.str.18, ptr %2825, align 8
  %2826 = load ptr, ptr %6, align 8
  %2827 = getelementptr inbounds nuw %struct.inflate_state, ptr %2826, i32 0, i32 1
  store i32 16209, ptr %2827, align 8
  br label %2839

2828:                                             ; preds = %2816, %2810
  br label %2829

2829:                                             ; preds = %2828
  store i64 0, ptr %11, align 8
  store i32 0, ptr %12, align 4
  br label %2830

2830:                                             ; preds = %2829
  br label %2831

2831:                                             ; preds = %2830, %2779, %2774
  %2832 = load ptr, ptr %6, align 8
  %2833 = getelementptr inbounds nuw %struct.inflate_state, ptr %2832, i32 0, i32 1
  store i32 16208, ptr %2833, align 8
  br label %2834

2834:                                             ; preds = %75, %2831
  store i32 1, ptr %20, align 4
  br label %2840

2835:                                             ; preds = %75
  store i32 -3, ptr %20, align 4
  br label %2840

2836:                                             ; preds = %75
  store i32 -4, ptr %3, align 4
  br label %3022

2837:                                             ; preds = %75
  br label %2838

2838:                                             ; preds = %75, %2837
  store i32 -2, ptr %3, align 4
  br label %3022

2839:                                             ; preds = %2823, %2763, %2628, %2623, %2529, %2411, %2171, %2160, %2151, %1988, %1917, %1883, %1849, %1841, %1513, %1402, %1327, %1303, %1259, %1214, %1139, %1023, %996, %297, %286, %249, %224, %191, %181, %151, %84
  br label %75

2840:                                             ; preds = %2835, %2834, %2793, %2653, %2627, %2503, %2447, %2348, %2285, %2202, %2084, %2016, %1927, %1757, %1703, %1624, %1561, %1430, %1339, %1302, %1276, %1235, %1198, %1151, %1121, %1040, %966, %935, %849, %822, %736, %720, %524, %438, %359, %259, %96
  br label %2841

2841:                                             ; preds = %2840
  %2842 = load ptr, ptr %8, align 8
  %2843 = load ptr, ptr %4, align 8
  %2844 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2843, i32 0, i32 3
  store ptr %2842, ptr %2844, align 8
  %2845 = load i32, ptr %10, align 4
  %2846 = load ptr, ptr %4, align 8
  %2847 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2846, i32 0, i32 4
  store i32 %2845, ptr %2847, align 8
  %2848 = load ptr, ptr %7, align 8
  %2849 = load ptr, ptr %4, align 8
  %2850 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2849, i32 0, i32 0
  store ptr %2848, ptr %2850, align 8
  %2851 = load i32, ptr %9, align 4
  %2852 = load ptr, ptr %4, align 8
  %2853 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2852, i32 0, i32 1
  store i32 %2851, ptr %2853, align 8
  %2854 = load i64, ptr %11, align 8
  %2855 = load ptr, ptr %6, align 8
  %2856 = getelementptr inbounds nuw %struct.inflate_state, ptr %2855, i32 0, i32 15
  store i64 %2854, ptr %2856, align 8
  %2857 = load i32, ptr %12, align 4
  %2858 = load ptr, ptr %6, align 8
  %2859 = getelementptr inbounds nuw %struct.inflate_state, ptr %2858, i32 0, i32 16
  store i32 %2857, ptr %2859, align 8
  br label %2860

2860:                                             ; preds = %2841
  %2861 = load ptr, ptr %6, align 8
  %2862 = getelementptr inbounds nuw %struct.inflate_state, ptr %2861, i32 0, i32 11
  %2863 = load i32, ptr %2862, align 4
  %2864 = icmp ne i32 %2863, 0
  br i1 %2864, label %2884, label %2865

2865:                                             ; preds = %2860
  %2866 = load i32, ptr %14, align 4
  %2867 = load ptr, ptr %4, align 8
  %2868 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2867, i32 0, i32 4
  %2869 = load i32, ptr %2868, align 8
  %2870 = icmp ne i32 %2866, %2869
  br i1 %2870, label %2871, label %2900

2871:                                             ; preds = %2865
  %2872 = load ptr, ptr %6, align 8
  %2873 = getelementptr inbounds nuw %struct.inflate_state, ptr %2872, i32 0, i32 1
  %2874 = load i32, ptr %2873, align 8
  %2875 = icmp ult i32 %2874, 16209
  br i1 %2875, label %2876, label %2900

2876:                                             ; preds = %2871
  %2877 = load ptr, ptr %6, align 8
  %2878 = getelementptr inbounds nuw %struct.inflate_state, ptr %2877, i32 0, i32 1
  %2879 = load i32, ptr %2878, align 8
  %2880 = icmp ult i32 %2879, 16206
  br i1 %2880, label %2884, label %2881

2881:                                             ; preds = %2876
  %2882 = load i32, ptr %5, align 4
  %2883 = icmp ne i32 %2882, 4
  br i1 %2883, label %2884, label %2900

2884:                                             ; preds = %2881, %2876, %2860
  %2885 = load ptr, ptr %4, align 8
  %2886 = load ptr, ptr %4, align 8
  %2887 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2886, i32 0, i32 3
  %2888 = load ptr, ptr %2887, align 8
  %2889 = load i32, ptr %14, align 4
  %2890 = load ptr, ptr %4, align 8
  %2891 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2890, i32 0, i32 4
  %2892 = load i32, ptr %2891, align 8
  %2893 = sub i32 %2889, %2892
  %2894 = call i32 @updatewindow(ptr noundef %2885, ptr noundef %2888, i32 noundef %2893)
  %2895 = icmp ne i32 %2894, 0
  br i1 %2895, label %2896, label %2899

2896:                                             ; preds = %2884
  %2897 = load ptr, ptr %6, align 8
  %2898 = getelementptr inbounds nuw %struct.inflate_state, ptr %2897, i32 0, i32 1
  store i32 16210, ptr %2898, align 8
  store i32 -4, ptr %3, align 4
  br label %3022

2899:                                             ; preds = %2884
  br label %2900

2900:                                             ; preds = %2899, %2881, %2871, %2865
  %2901 = load ptr, ptr %4, align 8
  %2902 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2901, i32 0, i32 1
  %2903 = load i32, ptr %2902, align 8
  %2904 = load i32, ptr %13, align 4
  %2905 = sub i32 %2904, %2903
  store i32 %2905, ptr %13, align 4
  %2906 = load ptr, ptr %4, align 8
  %2907 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2906, i32 0, i32 4
  %2908 = load i32, ptr %2907, align 8
  %2909 = load i32, ptr %14, align 4
  %2910 = sub i32 %2909, %2908
  store i32 %2910, ptr %14, align 4
  %2911 = load i32, ptr %13, align 4
  %2912 = zext i32 %2911 to i64
  %2913 = load ptr, ptr %4, align 8
  %2914 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2913, i32 0, i32 2
  %2915 = load i64, ptr %2914, align 8
  %2916 = add i64 %2915, %2912
  store i64 %2916, ptr %2914, align 8
  %2917 = load i32, ptr %14, align 4
  %2918 = zext i32 %2917 to i64
  %2919 = load ptr, ptr %4, align 8
  %2920 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2919, i32 0, i32 5
  %2921 = load i64, ptr %2920, align 8
  %2922 = add i64 %2921, %2918
  store i64 %2922, ptr %2920, align 8
  %2923 = load i32, ptr %14, align 4
  %2924 = zext i32 %2923 to i64
  %2925 = load ptr, ptr %6, align 8
  %2926 = getelementptr inbounds nuw %struct.inflate_state, ptr %2925, i32 0, i32 8
  %2927 = load i64, ptr %2926, align 8
  %2928 = add i64 %2927, %2924
  store i64 %2928, ptr %2926, align 8
  %2929 = load ptr, ptr %6, align 8
  %2930 = getelementptr inbounds nuw %struct.inflate_state, ptr %2929, i32 0, i32 3
  %2931 = load i32, ptr %2930, align 8
  %2932 = and i32 %2931, 4
  %2933 = icmp ne i32 %2932, 0
  br i1 %2933, label %2934, label %2974

2934:                                             ; preds = %2900
  %2935 = load i32, ptr %14, align 4
  %2936 = icmp ne i32 %2935, 0
  br i1 %2936, label %2937, label %2974

2937:                                             ; preds = %2934
  %2938 = load ptr, ptr %6, align 8
  %2939 = getelementptr inbounds nuw %struct.inflate_state, ptr %2938, i32 0, i32 5
  %2940 = load i32, ptr %2939, align 8
  %2941 = icmp ne i32 %2940, 0
  br i1 %2941, label %2942, label %2955

2942:                                             ; preds = %2937
  %2943 = load ptr, ptr %6, align 8
  %2944 = getelementptr inbounds nuw %struct.inflate_state, ptr %2943, i32 0, i32 7
  %2945 = load i64, ptr %2944, align 8
  %2946 = load ptr, ptr %4, align 8
  %2947 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2946, i32 0, i32 3
  %2948 = load ptr, ptr %2947, align 8
  %2949 = load i32, ptr %14, align 4
  %2950 = zext i32 %2949 to i64
  %2951 = sub i64 0, %2950
  %2952 = getelementptr inbounds i8, ptr %2948, i64 %2951
  %2953 = load i32, ptr %14, align 4
  %2954 = call i64 @crc32(i64 noundef %2945, ptr noundef %2952, i32 noundef %2953)
  br label %2968

2955:                                             ; preds = %2937
  %2956 = load ptr, ptr %6, align 8
  %2957 = getelementptr inbounds nuw %struct.inflate_state, ptr %2956, i32 0, i32 7
  %2958 = load i64, ptr %2957, align 8
  %2959 = load ptr, ptr %4, align 8
  %2960 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2959, i32 0, i32 3
  %2961 = load ptr, ptr %2960, align 8
  %2962 = load i32, ptr %14, align 4
  %2963 = zext i32 %2962 to i64
  %2964 = sub i64 0, %2963
  %2965 = getelementptr inbounds i8, ptr %2961, i64 %2964
  %2966 = load i32, ptr %14, align 4
  %2967 = call i64 @adler32(i64 noundef %2958, ptr noundef %2965, i32 noundef %2966)
  br label %2968

2968:                                             ; preds = %2955, %2942
  %2969 = phi i64 [ %2954, %2942 ], [ %2967, %2955 ]
  %2970 = load ptr, ptr %6, align 8
  %2971 = getelementptr inbounds nuw %struct.inflate_state, ptr %2970, i32 0, i32 7
  store i64 %2969, ptr %2971, align 8
  %2972 = load ptr, ptr %4, align 8
  %2973 = getelementptr inbounds nuw %struct.z_stream_s, ptr %2972, i32 0, i32 12
  store i64 %2969, ptr %2973, align 8
  br label %2974

2974:                                             ; preds = %2968, %2934, %2900
  %2975 = load ptr, ptr %6, align 8
  %2976 = getelementptr inbounds nuw %struct.inflate_state, ptr %2975, i32 0, i32 16
  %2977 = load i32, ptr %2976, align 8
  %2978 = load ptr, ptr %6, align 8
  %2979 = getelementptr inbounds nuw %struct.inflate_state, ptr %2978, i32 0, i32 2
  %2980 = load i32, ptr %2979, align 4
  %2981 = icmp ne i32 %2980, 0
  %2982 = zext i1 %2981 to i64
  %2983 = select i1 %2981, i32 64, i32 0
  %2984 = add nsw i32 %2977, %2983
  %2985 = load ptr, ptr %6, align 8
  %2986 = getelementptr inbounds nuw %struct.inflate_state, ptr %2985, i32 0, i32 1
  %2987 = load i32, ptr %2986, align 8
  %2988 = icmp eq i32 %2987, 16191
  %2989 = zext i1 %2988 to i64
  %2990 = select i1 %2988, i32 128, i32 0
  %2991 = add nsw i32 %2984, %2990
  %2992 = load ptr, ptr %6, align 8
  %2993 = getelementptr inbounds nuw %struct.inflate_state, ptr %2992, i32 0, i32 1
  %2994 = load i32, ptr %2993, align 8
  %2995 = icmp eq i32 %2994, 16199
  br i1 %2995, label %3001, label %2996

2996:                                             ; preds = %2974
  %2997 = load ptr, ptr %6, align 8
  %2998 = getelementptr inbounds nuw %struct.inflate_state, ptr %2997, i32 0, i32 1
  %2999 = load i32, ptr %2998, align 8
  %3000 = icmp eq i32 %2999, 16194
  br label %3001

3001:                                             ; preds = %2996, %2974
  %3002 = phi i1 [ true, %2974 ], [ %3000, %2996 ]
  %3003 = zext i1 %3002 to i64
  %3004 = select i1 %3002, i32 256, i32 0
  %3005 = add nsw i32 %2991, %3004
  %3006 = load ptr, ptr %4, align 8
  %3007 = getelementptr inbounds nuw %struct.z_stream_s, ptr %3006, i32 0, i32 11
  store i32 %3005, ptr %3007, align 8
  %3008 = load i32, ptr %13, align 4
  %3009 = icmp eq i32 %3008, 0
  br i1 %3009, label %3010, label %3013

3010:                                             ; preds = %3001
  %3011 = load i32, ptr %14, align 4
  %3012 = icmp eq i32 %3011, 0
  br i1 %3012, label %3016, label %3013

3013:                                             ; preds = %3010, %3001
  %3014 = load i32, ptr %5, align 4
  %3015 = icmp eq i32 %3014, 4
  br i1 %3015, label %3016, label %3020

3016:                                             ; preds = %3013, %3010
  %3017 = load i32, ptr %20, align 4
  %3018 = icmp eq i32 %3017, 0
  br i1 %3018, label %3019, label %3020

3019:                                             ; preds = %3016
  store i32 -5, ptr %20, align 4
  br label %3020

3020:                                             ; preds = %3019, %3016, %3013
  %3021 = load i32, ptr %20, align 4
  store i32 %3021, ptr %3, align 4
  br label %3022

3022:                                             ; preds = %3020, %2896, %2838, %2836, %1106, %40
  %3023 = load i32, ptr %3, align 4
  ret i32 %3023
}

declare i64 @crc32(i64 noundef, ptr noundef, i32 noundef) #1

declare i64 @adler32(i64 noundef, ptr noundef, i32 noundef) #1

; Function Attrs: nocallback nofree nounwind willreturn memory(argmem: readwrite)
declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) #2

; Function Attrs: noinline nounwind uwtable
define internal void @fixedtables(ptr noundef %0) #0 {
  %2 = alloca ptr, align 8
  store ptr %0, ptr %2, align 8
  %3 = load ptr, ptr %2, align 8
  %4 = getelementptr inbounds nuw %struct.inflate_state, ptr %3, i32 0, i32 20
  store ptr @fixedtables.lenfix, ptr %4, align 8
  %5 = load ptr, ptr %2, align 8
  %6 = getelementptr inbounds nuw %struct.inflate_state, ptr %5, i32 0, i32 22
  store i32 9, ptr %6, align 8
  %7 = load ptr, ptr %2, align 8
  %8 = getelementptr inbounds nuw %struct.inflate_state, ptr %7, i32 0, i32 21
  store ptr @fixedtables.distfix, ptr %8, align 8
  %9 = load ptr, ptr %2, align 8
  %10 = getelementptr inbounds nuw %struct.inflate_state, ptr %9, i32 0, i32 23
  store i32 5, ptr %10, align 4
  ret void
}

declare i32 @inflate_table(i32 noundef, ptr noundef, i32 noundef, ptr noundef, ptr noundef, ptr noundef) #1

declare void @inflate_fast(ptr noundef, i32 noundef) #1

; Function Attrs: noinline nounwind uwtable
define internal i32 @updatewindow(ptr noundef %0, ptr noundef %1, i32 noundef %2) #0 {
  %4 = alloca i32, align 4
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca i32, align 4
  %8 = alloca ptr, align 8
  %9 = alloca i32, align 4
  store ptr %0, ptr %5, align 8
  store ptr %1, ptr %6, align 8
  store i32 %2, ptr %7, align 4
  %10 = load ptr, ptr %5, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %8, align 8
  %13 = load ptr, ptr %8, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 14
  %15 = load ptr, ptr %14, align 8
  %16 = icmp eq ptr %15, null
  br i1 %16, label %17, label %37

17:                                               ; preds = %3
  %18 = load ptr, ptr %5, align 8
  %19 = getelementptr inbounds nuw %struct.z_stream_s, ptr %18, i32 0, i32 8
  %20 = load ptr, ptr %19, align 8
  %21 = load ptr, ptr %5, align 8
  %22 = getelementptr inbounds nuw %struct.z_stream_s, ptr %21, i32 0, i32 10
  %23 = load ptr, ptr %22, align 8
  %24 = load ptr, ptr %8, align 8
  %25 = getelementptr inbounds nuw %struct.inflate_state, ptr %24, i32 0, i32 10
  %26 = load i32, ptr %25, align 8
  %27 = shl i32 1, %26
  %28 = call ptr %20(ptr noundef %23, i32 noundef %27, i32 noundef 1)
  %29 = load ptr, ptr %8, align 8
  %30 = getelementptr inbounds nuw %struct.inflate_state, ptr %29, i32 0, i32 14
  store ptr %28, ptr %30, align 8
  %31 = load ptr, ptr %8, align 8
  %32 = getelementptr inbounds nuw %struct.inflate_state, ptr %31, i32 0, i32 14
  %33 = load ptr, ptr %32, align 8
  %34 = icmp eq ptr %33, null
  br i1 %34, label %35, label %36

35:                                               ; preds = %17
  store i32 1, ptr %4, align 4
  br label %167

36:                                               ; preds = %17
  br label %37

37:                                               ; preds = %36, %3
  %38 = load ptr, ptr %8, align 8
  %39 = getelementptr inbounds nuw %struct.inflate_state, ptr %38, i32 0, i32 11
  %40 = load i32, ptr %39, align 4
  %41 = icmp eq i32 %40, 0
  br i1 %41, label %42, label %53

42:                                               ; preds = %37
  %43 = load ptr, ptr %8, align 8
  %44 = getelementptr inbounds nuw %struct.inflate_state, ptr %43, i32 0, i32 10
  %45 = load i32, ptr %44, align 8
  %46 = shl i32 1, %45
  %47 = load ptr, ptr %8, align 8
  %48 = getelementptr inbounds nuw %struct.inflate_state, ptr %47, i32 0, i32 11
  store i32 %46, ptr %48, align 4
  %49 = load ptr, ptr %8, align 8
  %50 = getelementptr inbounds nuw %struct.inflate_state, ptr %49, i32 0, i32 13
  store i32 0, ptr %50, align 4
  %51 = load ptr, ptr %8, align 8
  %52 = getelementptr inbounds nuw %struct.inflate_state, ptr %51, i32 0, i32 12
  store i32 0, ptr %52, align 8
  br label %53

53:                                               ; preds = %42, %37
  %54 = load i32, ptr %7, align 4
  %55 = load ptr, ptr %8, align 8
  %56 = getelementptr inbounds nuw %struct.inflate_state, ptr %55, i32 0, i32 11
  %57 = load i32, ptr %56, align 4
  %58 = icmp uge i32 %54, %57
  br i1 %58, label %59, label %81

59:                                               ; preds = %53
  %60 = load ptr, ptr %8, align 8
  %61 = getelementptr inbounds nuw %struct.inflate_state, ptr %60, i32 0, i32 14
  %62 = load ptr, ptr %61, align 8
  %63 = load ptr, ptr %6, align 8
  %64 = load ptr, ptr %8, align 8
  %65 = getelementptr inbounds nuw %struct.inflate_state, ptr %64, i32 0, i32 11
  %66 = load i32, ptr %65, align 4
  %67 = zext i32 %66 to i64
  %68 = sub i64 0, %67
  %69 = getelementptr inbounds i8, ptr %63, i64 %68
  %70 = load ptr, ptr %8, align 8
  %71 = getelementptr inbounds nuw %struct.inflate_state, ptr %70, i32 0, i32 11
  %72 = load i32, ptr %71, align 4
  %73 = zext i32 %72 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %62, ptr align 1 %69, i64 %73, i1 false)
  %74 = load ptr, ptr %8, align 8
  %75 = getelementptr inbounds nuw %struct.inflate_state, ptr %74, i32 0, i32 13
  store i32 0, ptr %75, align 4
  %76 = load ptr, ptr %8, align 8
  %77 = getelementptr inbounds nuw %struct.inflate_state, ptr %76, i32 0, i32 11
  %78 = load i32, ptr %77, align 4
  %79 = load ptr, ptr %8, align 8
  %80 = getelementptr inbounds nuw %struct.inflate_state, ptr %79, i32 0, i32 12
  store i32 %78, ptr %80, align 8
  br label %166

81:                                               ; preds = %53
  %82 = load ptr, ptr %8, align 8
  %83 = getelementptr inbounds nuw %struct.inflate_state, ptr %82, i32 0, i32 11
  %84 = load i32, ptr %83, align 4
  %85 = load ptr, ptr %8, align 8
  %86 = getelementptr inbounds nuw %struct.inflate_state, ptr %85, i32 0, i32 13
  %87 = load i32, ptr %86, align 4
  %88 = sub i32 %84, %87
  store i32 %88, ptr %9, align 4
  %89 = load i32, ptr %9, align 4
  %90 = load i32, ptr %7, align 4
  %91 = icmp ugt i32 %89, %90
  br i1 %91, label %92, label %94

92:                                               ; preds = %81
  %93 = load i32, ptr %7, align 4
  store i32 %93, ptr %9, align 4
  br label %94

94:                                               ; preds = %92, %81
  %95 = load ptr, ptr %8, align 8
  %96 = getelementptr inbounds nuw %struct.inflate_state, ptr %95, i32 0, i32 14
  %97 = load ptr, ptr %96, align 8
  %98 = load ptr, ptr %8, align 8
  %99 = getelementptr inbounds nuw %struct.inflate_state, ptr %98, i32 0, i32 13
  %100 = load i32, ptr %99, align 4
  %101 = zext i32 %100 to i64
  %102 = getelementptr inbounds nuw i8, ptr %97, i64 %101
  %103 = load ptr, ptr %6, align 8
  %104 = load i32, ptr %7, align 4
  %105 = zext i32 %104 to i64
  %106 = sub i64 0, %105
  %107 = getelementptr inbounds i8, ptr %103, i64 %106
  %108 = load i32, ptr %9, align 4
  %109 = zext i32 %108 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %102, ptr align 1 %107, i64 %109, i1 false)
  %110 = load i32, ptr %9, align 4
  %111 = load i32, ptr %7, align 4
  %112 = sub i32 %111, %110
  store i32 %112, ptr %7, align 4
  %113 = load i32, ptr %7, align 4
  %114 = icmp ne i32 %113, 0
  br i1 %114, label %115, label %134

115:                                              ; preds = %94
  %116 = load ptr, ptr %8, align 8
  %117 = getelementptr inbounds nuw %struct.inflate_state, ptr %116, i32 0, i32 14
  %118 = load ptr, ptr %117, align 8
  %119 = load ptr, ptr %6, align 8
  %120 = load i32, ptr %7, align 4
  %121 = zext i32 %120 to i64
  %122 = sub i64 0, %121
  %123 = getelementptr inbounds i8, ptr %119, i64 %122
  %124 = load i32, ptr %7, align 4
  %125 = zext i32 %124 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %118, ptr align 1 %123, i64 %125, i1 false)
  %126 = load i32, ptr %7, align 4
  %127 = load ptr, ptr %8, align 8
  %128 = getelementptr inbounds nuw %struct.inflate_state, ptr %127, i32 0, i32 13
  store i32 %126, ptr %128, align 4
  %129 = load ptr, ptr %8, align 8
  %130 = getelementptr inbounds nuw %struct.inflate_state, ptr %129, i32 0, i32 11
  %131 = load i32, ptr %130, align 4
  %132 = load ptr, ptr %8, align 8
  %133 = getelementptr inbounds nuw %struct.inflate_state, ptr %132, i32 0, i32 12
  store i32 %131, ptr %133, align 8
  br label %165

134:                                              ; preds = %94
  %135 = load i32, ptr %9, align 4
  %136 = load ptr, ptr %8, align 8
  %137 = getelementptr inbounds nuw %struct.inflate_state, ptr %136, i32 0, i32 13
  %138 = load i32, ptr %137, align 4
  %139 = add i32 %138, %135
  store i32 %139, ptr %137, align 4
  %140 = load ptr, ptr %8, align 8
  %141 = getelementptr inbounds nuw %struct.inflate_state, ptr %140, i32 0, i32 13
  %142 = load i32, ptr %141, align 4
  %143 = load ptr, ptr %8, align 8
  %144 = getelementptr inbounds nuw %struct.inflate_state, ptr %143, i32 0, i32 11
  %145 = load i32, ptr %144, align 4
  %146 = icmp eq i32 %142, %145
  br i1 %146, label %147, label %150

147:                                              ; preds = %134
  %148 = load ptr, ptr %8, align 8
  %149 = getelementptr inbounds nuw %struct.inflate_state, ptr %148, i32 0, i32 13
  store i32 0, ptr %149, align 4
  br label %150

150:                                              ; preds = %147, %134
  %151 = load ptr, ptr %8, align 8
  %152 = getelementptr inbounds nuw %struct.inflate_state, ptr %151, i32 0, i32 12
  %153 = load i32, ptr %152, align 8
  %154 = load ptr, ptr %8, align 8
  %155 = getelementptr inbounds nuw %struct.inflate_state, ptr %154, i32 0, i32 11
  %156 = load i32, ptr %155, align 4
  %157 = icmp ult i32 %153, %156
  br i1 %157, label %158, label %164

158:                                              ; preds = %150
  %159 = load i32, ptr %9, align 4
  %160 = load ptr, ptr %8, align 8
  %161 = getelementptr inbounds nuw %struct.inflate_state, ptr %160, i32 0, i32 12
  %162 = load i32, ptr %161, align 8
  %163 = add i32 %162, %159
  store i32 %163, ptr %161, align 8
  br label %164

164:                                              ; preds = %158, %150
  br label %165

165:                                              ; preds = %164, %115
  br label %166

166:                                              ; preds = %165, %59
  store i32 0, ptr %4, align 4
  br label %167

167:                                              ; preds = %166, %35
  %168 = load i32, ptr %4, align 4
  ret i32 %168
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateEnd(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i32 -2, ptr %2, align 4
  br label %39

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 14
  %15 = load ptr, ptr %14, align 8
  %16 = icmp ne ptr %15, null
  br i1 %16, label %17, label %27

17:                                               ; preds = %9
  %18 = load ptr, ptr %3, align 8
  %19 = getelementptr inbounds nuw %struct.z_stream_s, ptr %18, i32 0, i32 9
  %20 = load ptr, ptr %19, align 8
  %21 = load ptr, ptr %3, align 8
  %22 = getelementptr inbounds nuw %struct.z_stream_s, ptr %21, i32 0, i32 10
  %23 = load ptr, ptr %22, align 8
  %24 = load ptr, ptr %4, align 8
  %25 = getelementptr inbounds nuw %struct.inflate_state, ptr %24, i32 0, i32 14
  %26 = load ptr, ptr %25, align 8
  call void %20(ptr noundef %23, ptr noundef %26)
  br label %27

27:                                               ; preds = %17, %9
  %28 = load ptr, ptr %3, align 8
  %29 = getelementptr inbounds nuw %struct.z_stream_s, ptr %28, i32 0, i32 9
  %30 = load ptr, ptr %29, align 8
  %31 = load ptr, ptr %3, align 8
  %32 = getelementptr inbounds nuw %struct.z_stream_s, ptr %31, i32 0, i32 10
  %33 = load ptr, ptr %32, align 8
  %34 = load ptr, ptr %3, align 8
  %35 = getelementptr inbounds nuw %struct.z_stream_s, ptr %34, i32 0, i32 7
  %36 = load ptr, ptr %35, align 8
  call void %30(ptr noundef %33, ptr noundef %36)
  %37 = load ptr, ptr %3, align 8
  %38 = getelementptr inbounds nuw %struct.z_stream_s, ptr %37, i32 0, i32 7
  store ptr null, ptr %38, align 8
  store i32 0, ptr %2, align 4
  br label %39

39:                                               ; preds = %27, %8
  %40 = load i32, ptr %2, align 4
  ret i32 %40
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateGetDictionary(ptr noundef %0, ptr noundef %1, ptr noundef %2) #0 {
  %4 = alloca i32, align 4
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  store ptr %0, ptr %5, align 8
  store ptr %1, ptr %6, align 8
  store ptr %2, ptr %7, align 8
  %9 = load ptr, ptr %5, align 8
  %10 = call i32 @inflateStateCheck(ptr noundef %9)
  %11 = icmp ne i32 %10, 0
  br i1 %11, label %12, label %13

12:                                               ; preds = %3
  store i32 -2, ptr %4, align 4
  br label %70

13:                                               ; preds = %3
  %14 = load ptr, ptr %5, align 8
  %15 = getelementptr inbounds nuw %struct.z_stream_s, ptr %14, i32 0, i32 7
  %16 = load ptr, ptr %15, align 8
  store ptr %16, ptr %8, align 8
  %17 = load ptr, ptr %8, align 8
  %18 = getelementptr inbounds nuw %struct.inflate_state, ptr %17, i32 0, i32 12
  %19 = load i32, ptr %18, align 8
  %20 = icmp ne i32 %19, 0
  br i1 %20, label %21, label %61

21:                                               ; preds = %13
  %22 = load ptr, ptr %6, align 8
  %23 = icmp ne ptr %22, null
  br i1 %23, label %24, label %61

24:                                               ; preds = %21
  %25 = load ptr, ptr %6, align 8
  %26 = load ptr, ptr %8, align 8
  %27 = getelementptr inbounds nuw %struct.inflate_state, ptr %26, i32 0, i32 14
  %28 = load ptr, ptr %27, align 8
  %29 = load ptr, ptr %8, align 8
  %30 = getelementptr inbounds nuw %struct.inflate_state, ptr %29, i32 0, i32 13
  %31 = load i32, ptr %30, align 4
  %32 = zext i32 %31 to i64
  %33 = getelementptr inbounds nuw i8, ptr %28, i64 %32
  %34 = load ptr, ptr %8, align 8
  %35 = getelementptr inbounds nuw %struct.inflate_state, ptr %34, i32 0, i32 12
  %36 = load i32, ptr %35, align 8
  %37 = load ptr, ptr %8, align 8
  %38 = getelementptr inbounds nuw %struct.inflate_state, ptr %37, i32 0, i32 13
  %39 = load i32, ptr %38, align 4
  %40 = sub i32 %36, %39
  %41 = zext i32 %40 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %25, ptr align 1 %33, i64 %41, i1 false)
  %42 = load ptr, ptr %6, align 8
  %43 = load ptr, ptr %8, align 8
  %44 = getelementptr inbounds nuw %struct.inflate_state, ptr %43, i32 0, i32 12
  %45 = load i32, ptr %44, align 8
  %46 = zext i32 %45 to i64
  %47 = getelementptr inbounds nuw i8, ptr %42, i64 %46
  %48 = load ptr, ptr %8, align 8
  %49 = getelementptr inbounds nuw %struct.inflate_state, ptr %48, i32 0, i32 13
  %50 = load i32, ptr %49, align 4
  %51 = zext i32 %50 to i64
  %52 = sub i64 0, %51
  %53 = getelementptr inbounds i8, ptr %47, i64 %52
  %54 = load ptr, ptr %8, align 8
  %55 = getelementptr inbounds nuw %struct.inflate_state, ptr %54, i32 0, i32 14
  %56 = load ptr, ptr %55, align 8
  %57 = load ptr, ptr %8, align 8
  %58 = getelementptr inbounds nuw %struct.inflate_state, ptr %57, i32 0, i32 13
  %59 = load i32, ptr %58, align 4
  %60 = zext i32 %59 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %53, ptr align 1 %56, i64 %60, i1 false)
  br label %61

61:                                               ; preds = %24, %21, %13
  %62 = load ptr, ptr %7, align 8
  %63 = icmp ne ptr %62, null
  br i1 %63, label %64, label %69

64:                                               ; preds = %61
  %65 = load ptr, ptr %8, align 8
  %66 = getelementptr inbounds nuw %struct.inflate_state, ptr %65, i32 0, i32 12
  %67 = load i32, ptr %66, align 8
  %68 = load ptr, ptr %7, align 8
  store i32 %67, ptr %68, align 4
  br label %69

69:                                               ; preds = %64, %61
  store i32 0, ptr %4, align 4
  br label %70

70:                                               ; preds = %69, %12
  %71 = load i32, ptr %4, align 4
  ret i32 %71
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateSetDictionary(ptr noundef %0, ptr noundef %1, i32 noundef %2) #0 {
  %4 = alloca i32, align 4
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca i32, align 4
  %8 = alloca ptr, align 8
  %9 = alloca i64, align 8
  %10 = alloca i32, align 4
  store ptr %0, ptr %5, align 8
  store ptr %1, ptr %6, align 8
  store i32 %2, ptr %7, align 4
  %11 = load ptr, ptr %5, align 8
  %12 = call i32 @inflateStateCheck(ptr noundef %11)
  %13 = icmp ne i32 %12, 0
  br i1 %13, label %14, label %15

14:                                               ; preds = %3
  store i32 -2, ptr %4, align 4
  br label %63

15:                                               ; preds = %3
  %16 = load ptr, ptr %5, align 8
  %17 = getelementptr inbounds nuw %struct.z_stream_s, ptr %16, i32 0, i32 7
  %18 = load ptr, ptr %17, align 8
  store ptr %18, ptr %8, align 8
  %19 = load ptr, ptr %8, align 8
  %20 = getelementptr inbounds nuw %struct.inflate_state, ptr %19, i32 0, i32 3
  %21 = load i32, ptr %20, align 8
  %22 = icmp ne i32 %21, 0
  br i1 %22, label %23, label %29

23:                                               ; preds = %15
  %24 = load ptr, ptr %8, align 8
  %25 = getelementptr inbounds nuw %struct.inflate_state, ptr %24, i32 0, i32 1
  %26 = load i32, ptr %25, align 8
  %27 = icmp ne i32 %26, 16190
  br i1 %27, label %28, label %29

28:                                               ; preds = %23
  store i32 -2, ptr %4, align 4
  br label %63

29:                                               ; preds = %23, %15
  %30 = load ptr, ptr %8, align 8
  %31 = getelementptr inbounds nuw %struct.inflate_state, ptr %30, i32 0, i32 1
  %32 = load i32, ptr %31, align 8
  %33 = icmp eq i32 %32, 16190
  br i1 %33, label %34, label %47

34:                                               ; preds = %29
  %35 = call i64 @adler32(i64 noundef 0, ptr noundef null, i32 noundef 0)
  store i64 %35, ptr %9, align 8
  %36 = load i64, ptr %9, align 8
  %37 = load ptr, ptr %6, align 8
  %38 = load i32, ptr %7, align 4
  %39 = call i64 @adler32(i64 noundef %36, ptr noundef %37, i32 noundef %38)
  store i64 %39, ptr %9, align 8
  %40 = load i64, ptr %9, align 8
  %41 = load ptr, ptr %8, align 8
  %42 = getelementptr inbounds nuw %struct.inflate_state, ptr %41, i32 0, i32 7
  %43 = load i64, ptr %42, align 8
  %44 = icmp ne i64 %40, %43
  br i1 %44, label %45, label %46

45:                                               ; preds = %34
  store i32 -3, ptr %4, align 4
  br label %63

46:                                               ; preds = %34
  br label %47

47:                                               ; preds = %46, %29
  %48 = load ptr, ptr %5, align 8
  %49 = load ptr, ptr %6, align 8
  %50 = load i32, ptr %7, align 4
  %51 = zext i32 %50 to i64
  %52 = getelementptr inbounds nuw i8, ptr %49, i64 %51
  %53 = load i32, ptr %7, align 4
  %54 = call i32 @updatewindow(ptr noundef %48, ptr noundef %52, i32 noundef %53)
  store i32 %54, ptr %10, align 4
  %55 = load i32, ptr %10, align 4
  %56 = icmp ne i32 %55, 0
  br i1 %56, label %57, label %60

57:                                               ; preds = %47
  %58 = load ptr, ptr %8, align 8
  %59 = getelementptr inbounds nuw %struct.inflate_state, ptr %58, i32 0, i32 1
  store i32 16210, ptr %59, align 8
  store i32 -4, ptr %4, align 4
  br label %63

60:                                               ; preds = %47
  %61 = load ptr, ptr %8, align 8
  %62 = getelementptr inbounds nuw %struct.inflate_state, ptr %61, i32 0, i32 4
  store i32 1, ptr %62, align 4
  store i32 0, ptr %4, align 4
  br label %63

63:                                               ; preds = %60, %57, %45, %28, %14
  %64 = load i32, ptr %4, align 4
  ret i32 %64
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateGetHeader(ptr noundef %0, ptr noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  %7 = load ptr, ptr %4, align 8
  %8 = call i32 @inflateStateCheck(ptr noundef %7)
  %9 = icmp ne i32 %8, 0
  br i1 %9, label %10, label %11

10:                                               ; preds = %2
  store i32 -2, ptr %3, align 4
  br label %27

11:                                               ; preds = %2
  %12 = load ptr, ptr %4, align 8
  %13 = getelementptr inbounds nuw %struct.z_stream_s, ptr %12, i32 0, i32 7
  %14 = load ptr, ptr %13, align 8
  store ptr %14, ptr %6, align 8
  %15 = load ptr, ptr %6, align 8
  %16 = getelementptr inbounds nuw %struct.inflate_state, ptr %15, i32 0, i32 3
  %17 = load i32, ptr %16, align 8
  %18 = and i32 %17, 2
  %19 = icmp eq i32 %18, 0
  br i1 %19, label %20, label %21

20:                                               ; preds = %11
  store i32 -2, ptr %3, align 4
  br label %27

21:                                               ; preds = %11
  %22 = load ptr, ptr %5, align 8
  %23 = load ptr, ptr %6, align 8
  %24 = getelementptr inbounds nuw %struct.inflate_state, ptr %23, i32 0, i32 9
  store ptr %22, ptr %24, align 8
  %25 = load ptr, ptr %5, align 8
  %26 = getelementptr inbounds nuw %struct.gz_header_s, ptr %25, i32 0, i32 12
  store i32 0, ptr %26, align 8
  store i32 0, ptr %3, align 4
  br label %27

27:                                               ; preds = %21, %20, %10
  %28 = load i32, ptr %3, align 4
  ret i32 %28
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateSync(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca i32, align 4
  %5 = alloca i32, align 4
  %6 = alloca i64, align 8
  %7 = alloca i64, align 8
  %8 = alloca [4 x i8], align 1
  %9 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %10 = load ptr, ptr %3, align 8
  %11 = call i32 @inflateStateCheck(ptr noundef %10)
  %12 = icmp ne i32 %11, 0
  br i1 %12, label %13, label %14

13:                                               ; preds = %1
  store i32 -2, ptr %2, align 4
  br label %151

14:                                               ; preds = %1
  %15 = load ptr, ptr %3, align 8
  %16 = getelementptr inbounds nuw %struct.z_stream_s, ptr %15, i32 0, i32 7
  %17 = load ptr, ptr %16, align 8
  store ptr %17, ptr %9, align 8
  %18 = load ptr, ptr %3, align 8
  %19 = getelementptr inbounds nuw %struct.z_stream_s, ptr %18, i32 0, i32 1
  %20 = load i32, ptr %19, align 8
  %21 = icmp eq i32 %20, 0
  br i1 %21, label %22, label %28

22:                                               ; preds = %14
  %23 = load ptr, ptr %9, align 8
  %24 = getelementptr inbounds nuw %struct.inflate_state, ptr %23, i32 0, i32 16
  %25 = load i32, ptr %24, align 8
  %26 = icmp ult i32 %25, 8
  br i1 %26, label %27, label %28

27:                                               ; preds = %22
  store i32 -5, ptr %2, align 4
  br label %151

28:                                               ; preds = %22, %14
  %29 = load ptr, ptr %9, align 8
  %30 = getelementptr inbounds nuw %struct.inflate_state, ptr %29, i32 0, i32 1
  %31 = load i32, ptr %30, align 8
  %32 = icmp ne i32 %31, 16211
  br i1 %32, label %33, label %83

33:                                               ; preds = %28
  %34 = load ptr, ptr %9, align 8
  %35 = getelementptr inbounds nuw %struct.inflate_state, ptr %34, i32 0, i32 1
  store i32 16211, ptr %35, align 8
  %36 = load ptr, ptr %9, align 8
  %37 = getelementptr inbounds nuw %struct.inflate_state, ptr %36, i32 0, i32 16
  %38 = load i32, ptr %37, align 8
  %39 = and i32 %38, 7
  %40 = load ptr, ptr %9, align 8
  %41 = getelementptr inbounds nuw %struct.inflate_state, ptr %40, i32 0, i32 15
  %42 = load i64, ptr %41, align 8
  %43 = zext i32 %39 to i64
  %44 = shl i64 %42, %43
  store i64 %44, ptr %41, align 8
  %45 = load ptr, ptr %9, align 8
  %46 = getelementptr inbounds nuw %struct.inflate_state, ptr %45, i32 0, i32 16
  %47 = load i32, ptr %46, align 8
  %48 = and i32 %47, 7
  %49 = load ptr, ptr %9, align 8
  %50 = getelementptr inbounds nuw %struct.inflate_state, ptr %49, i32 0, i32 16
  %51 = load i32, ptr %50, align 8
  %52 = sub i32 %51, %48
  store i32 %52, ptr %50, align 8
  store i32 0, ptr %4, align 4
  br label %53

53:                                               ; preds = %58, %33
  %54 = load ptr, ptr %9, align 8
  %55 = getelementptr inbounds nuw %struct.inflate_state, ptr %54, i32 0, i32 16
  %56 = load i32, ptr %55, align 8
  %57 = icmp uge i32 %56, 8
  br i1 %57, label %58, label %75

58:                                               ; preds = %53
  %59 = load ptr, ptr %9, align 8
  %60 = getelementptr inbounds nuw %struct.inflate_state, ptr %59, i32 0, i32 15
  %61 = load i64, ptr %60, align 8
  %62 = trunc i64 %61 to i8
  %63 = load i32, ptr %4, align 4
  %64 = add i32 %63, 1
  store i32 %64, ptr %4, align 4
  %65 = zext i32 %63 to i64
  %66 = getelementptr inbounds nuw [4 x i8], ptr %8, i64 0, i64 %65
  store i8 %62, ptr %66, align 1
  %67 = load ptr, ptr %9, align 8
  %68 = getelementptr inbounds nuw %struct.inflate_state, ptr %67, i32 0, i32 15
  %69 = load i64, ptr %68, align 8
  %70 = lshr i64 %69, 8
  store i64 %70, ptr %68, align 8
  %71 = load ptr, ptr %9, align 8
  %72 = getelementptr inbounds nuw %struct.inflate_state, ptr %71, i32 0, i32 16
  %73 = load i32, ptr %72, align 8
  %74 = sub i32 %73, 8
  store i32 %74, ptr %72, align 8
  br label %53, !llvm.loop !31

75:                                               ; preds = %53
  %76 = load ptr, ptr %9, align 8
  %77 = getelementptr inbounds nuw %struct.inflate_state, ptr %76, i32 0, i32 27
  store i32 0, ptr %77, align 4
  %78 = load ptr, ptr %9, align 8
  %79 = getelementptr inbounds nuw %struct.inflate_state, ptr %78, i32 0, i32 27
  %80 = getelementptr inbounds [4 x i8], ptr %8, i64 0, i64 0
  %81 = load i32, ptr %4, align 4
  %82 = call i32 @syncsearch(ptr noundef %79, ptr noundef %80, i32 noundef %81)
  br label %83

83:                                               ; preds = %75, %28
  %84 = load ptr, ptr %9, align 8
  %85 = getelementptr inbounds nuw %struct.inflate_state, ptr %84, i32 0, i32 27
  %86 = load ptr, ptr %3, align 8
  %87 = getelementptr inbounds nuw %struct.z_stream_s, ptr %86, i32 0, i32 0
  %88 = load ptr, ptr %87, align 8
  %89 = load ptr, ptr %3, align 8
  %90 = getelementptr inbounds nuw %struct.z_stream_s, ptr %89, i32 0, i32 1
  %91 = load i32, ptr %90, align 8
  %92 = call i32 @syncsearch(ptr noundef %85, ptr noundef %88, i32 noundef %91)
  store i32 %92, ptr %4, align 4
  %93 = load i32, ptr %4, align 4
  %94 = load ptr, ptr %3, align 8
  %95 = getelementptr inbounds nuw %struct.z_stream_s, ptr %94, i32 0, i32 1
  %96 = load i32, ptr %95, align 8
  %97 = sub i32 %96, %93
  store i32 %97, ptr %95, align 8
  %98 = load i32, ptr %4, align 4
  %99 = load ptr, ptr %3, align 8
  %100 = getelementptr inbounds nuw %struct.z_stream_s, ptr %99, i32 0, i32 0
  %101 = load ptr, ptr %100, align 8
  %102 = zext i32 %98 to i64
  %103 = getelementptr inbounds nuw i8, ptr %101, i64 %102
  store ptr %103, ptr %100, align 8
  %104 = load i32, ptr %4, align 4
  %105 = zext i32 %104 to i64
  %106 = load ptr, ptr %3, align 8
  %107 = getelementptr inbounds nuw %struct.z_stream_s, ptr %106, i32 0, i32 2
  %108 = load i64, ptr %107, align 8
  %109 = add i64 %108, %105
  store i64 %109, ptr %107, align 8
  %110 = load ptr, ptr %9, align 8
  %111 = getelementptr inbounds nuw %struct.inflate_state, ptr %110, i32 0, i32 27
  %112 = load i32, ptr %111, align 4
  %113 = icmp ne i32 %112, 4
  br i1 %113, label %114, label %115

114:                                              ; preds = %83
  store i32 -3, ptr %2, align 4
  br label %151

115:                                              ; preds = %83
  %116 = load ptr, ptr %9, align 8
  %117 = getelementptr inbounds nuw %struct.inflate_state, ptr %116, i32 0, i32 5
  %118 = load i32, ptr %117, align 8
  %119 = icmp eq i32 %118, -1
  br i1 %119, label %120, label %123

120:                                              ; preds = %115
  %121 = load ptr, ptr %9, align 8
  %122 = getelementptr inbounds nuw %struct.inflate_state, ptr %121, i32 0, i32 3
  store i32 0, ptr %122, align 8
  br label %128

123:                                              ; preds = %115
  %124 = load ptr, ptr %9, align 8
  %125 = getelementptr inbounds nuw %struct.inflate_state, ptr %124, i32 0, i32 3
  %126 = load i32, ptr %125, align 8
  %127 = and i32 %126, -5
  store i32 %127, ptr %125, align 8
  br label %128

128:                                              ; preds = %123, %120
  %129 = load ptr, ptr %9, align 8
  %130 = getelementptr inbounds nuw %struct.inflate_state, ptr %129, i32 0, i32 5
  %131 = load i32, ptr %130, align 8
  store i32 %131, ptr %5, align 4
  %132 = load ptr, ptr %3, align 8
  %133 = getelementptr inbounds nuw %struct.z_stream_s, ptr %132, i32 0, i32 2
  %134 = load i64, ptr %133, align 8
  store i64 %134, ptr %6, align 8
  %135 = load ptr, ptr %3, align 8
  %136 = getelementptr inbounds nuw %struct.z_stream_s, ptr %135, i32 0, i32 5
  %137 = load i64, ptr %136, align 8
  store i64 %137, ptr %7, align 8
  %138 = load ptr, ptr %3, align 8
  %139 = call i32 @inflateReset(ptr noundef %138)
  %140 = load i64, ptr %6, align 8
  %141 = load ptr, ptr %3, align 8
  %142 = getelementptr inbounds nuw %struct.z_stream_s, ptr %141, i32 0, i32 2
  store i64 %140, ptr %142, align 8
  %143 = load i64, ptr %7, align 8
  %144 = load ptr, ptr %3, align 8
  %145 = getelementptr inbounds nuw %struct.z_stream_s, ptr %144, i32 0, i32 5
  store i64 %143, ptr %145, align 8
  %146 = load i32, ptr %5, align 4
  %147 = load ptr, ptr %9, align 8
  %148 = getelementptr inbounds nuw %struct.inflate_state, ptr %147, i32 0, i32 5
  store i32 %146, ptr %148, align 8
  %149 = load ptr, ptr %9, align 8
  %150 = getelementptr inbounds nuw %struct.inflate_state, ptr %149, i32 0, i32 1
  store i32 16191, ptr %150, align 8
  store i32 0, ptr %2, align 4
  br label %151

151:                                              ; preds = %128, %114, %27, %13
  %152 = load i32, ptr %2, align 4
  ret i32 %152
}

; Function Attrs: noinline nounwind uwtable
define internal i32 @syncsearch(ptr noundef %0, ptr noundef %1, i32 noundef %2) #0 {
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca i32, align 4
  %7 = alloca i32, align 4
  %8 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  store i32 %2, ptr %6, align 4
  %9 = load ptr, ptr %4, align 8
  %10 = load i32, ptr %9, align 4
  store i32 %10, ptr %7, align 4
  store i32 0, ptr %8, align 4
  br label %11

11:                                               ; preds = %47, %3
  %12 = load i32, ptr %8, align 4
  %13 = load i32, ptr %6, align 4
  %14 = icmp ult i32 %12, %13
  br i1 %14, label %15, label %18

15:                                               ; preds = %11
  %16 = load i32, ptr %7, align 4
  %17 = icmp ult i32 %16, 4
  br label %18

18:                                               ; preds = %15, %11
  %19 = phi i1 [ false, %11 ], [ %17, %15 ]
  br i1 %19, label %20, label %50

20:                                               ; preds = %18
  %21 = load ptr, ptr %5, align 8
  %22 = load i32, ptr %8, align 4
  %23 = zext i32 %22 to i64
  %24 = getelementptr inbounds nuw i8, ptr %21, i64 %23
  %25 = load i8, ptr %24, align 1
  %26 = zext i8 %25 to i32
  %27 = load i32, ptr %7, align 4
  %28 = icmp ult i32 %27, 2
  %29 = zext i1 %28 to i64
  %30 = select i1 %28, i32 0, i32 255
  %31 = icmp eq i32 %26, %30
  br i1 %31, label %32, label %35

32:                                               ; preds = %20
  %33 = load i32, ptr %7, align 4
  %34 = add i32 %33, 1
  store i32 %34, ptr %7, align 4
  br label %47

35:                                               ; preds = %20
  %36 = load ptr, ptr %5, align 8
  %37 = load i32, ptr %8, align 4
  %38 = zext i32 %37 to i64
  %39 = getelementptr inbounds nuw i8, ptr %36, i64 %38
  %40 = load i8, ptr %39, align 1
  %41 = icmp ne i8 %40, 0
  br i1 %41, label %42, label %43

42:                                               ; preds = %35
  store i32 0, ptr %7, align 4
  br label %46

43:                                               ; preds = %35
  %44 = load i32, ptr %7, align 4
  %45 = sub i32 4, %44
  store i32 %45, ptr %7, align 4
  br label %46

46:                                               ; preds = %43, %42
  br label %47

47:                                               ; preds = %46, %32
  %48 = load i32, ptr %8, align 4
  %49 = add i32 %48, 1
  store i32 %49, ptr %8, align 4
  br label %11, !llvm.loop !32

50:                                               ; preds = %18
  %51 = load i32, ptr %7, align 4
  %52 = load ptr, ptr %4, align 8
  store i32 %51, ptr %52, align 4
  %53 = load i32, ptr %8, align 4
  ret i32 %53
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateSyncPoint(ptr noundef %0) #0 {
  %2 = alloca i32, align 4
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i32 -2, ptr %2, align 4
  br label %25

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 1
  %15 = load i32, ptr %14, align 8
  %16 = icmp eq i32 %15, 16193
  br i1 %16, label %17, label %22

17:                                               ; preds = %9
  %18 = load ptr, ptr %4, align 8
  %19 = getelementptr inbounds nuw %struct.inflate_state, ptr %18, i32 0, i32 16
  %20 = load i32, ptr %19, align 8
  %21 = icmp eq i32 %20, 0
  br label %22

22:                                               ; preds = %17, %9
  %23 = phi i1 [ false, %9 ], [ %21, %17 ]
  %24 = zext i1 %23 to i32
  store i32 %24, ptr %2, align 4
  br label %25

25:                                               ; preds = %22, %8
  %26 = load i32, ptr %2, align 4
  ret i32 %26
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateCopy(ptr noundef %0, ptr noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca ptr, align 8
  %6 = alloca ptr, align 8
  %7 = alloca ptr, align 8
  %8 = alloca ptr, align 8
  %9 = alloca i32, align 4
  store ptr %0, ptr %4, align 8
  store ptr %1, ptr %5, align 8
  %10 = load ptr, ptr %5, align 8
  %11 = call i32 @inflateStateCheck(ptr noundef %10)
  %12 = icmp ne i32 %11, 0
  br i1 %12, label %16, label %13

13:                                               ; preds = %2
  %14 = load ptr, ptr %4, align 8
  %15 = icmp eq ptr %14, null
  br i1 %15, label %16, label %17

16:                                               ; preds = %13, %2
  store i32 -2, ptr %3, align 4
  br label %154

17:                                               ; preds = %13
  %18 = load ptr, ptr %5, align 8
  %19 = getelementptr inbounds nuw %struct.z_stream_s, ptr %18, i32 0, i32 7
  %20 = load ptr, ptr %19, align 8
  store ptr %20, ptr %6, align 8
  %21 = load ptr, ptr %5, align 8
  %22 = getelementptr inbounds nuw %struct.z_stream_s, ptr %21, i32 0, i32 8
  %23 = load ptr, ptr %22, align 8
  %24 = load ptr, ptr %5, align 8
  %25 = getelementptr inbounds nuw %struct.z_stream_s, ptr %24, i32 0, i32 10
  %26 = load ptr, ptr %25, align 8
  %27 = call ptr %23(ptr noundef %26, i32 noundef 1, i32 noundef 7160)
  store ptr %27, ptr %7, align 8
  %28 = load ptr, ptr %7, align 8
  %29 = icmp eq ptr %28, null
  br i1 %29, label %30, label %31

30:                                               ; preds = %17
  store i32 -4, ptr %3, align 4
  br label %154

31:                                               ; preds = %17
  store ptr null, ptr %8, align 8
  %32 = load ptr, ptr %6, align 8
  %33 = getelementptr inbounds nuw %struct.inflate_state, ptr %32, i32 0, i32 14
  %34 = load ptr, ptr %33, align 8
  %35 = icmp ne ptr %34, null
  br i1 %35, label %36, label %59

36:                                               ; preds = %31
  %37 = load ptr, ptr %5, align 8
  %38 = getelementptr inbounds nuw %struct.z_stream_s, ptr %37, i32 0, i32 8
  %39 = load ptr, ptr %38, align 8
  %40 = load ptr, ptr %5, align 8
  %41 = getelementptr inbounds nuw %struct.z_stream_s, ptr %40, i32 0, i32 10
  %42 = load ptr, ptr %41, align 8
  %43 = load ptr, ptr %6, align 8
  %44 = getelementptr inbounds nuw %struct.inflate_state, ptr %43, i32 0, i32 10
  %45 = load i32, ptr %44, align 8
  %46 = shl i32 1, %45
  %47 = call ptr %39(ptr noundef %42, i32 noundef %46, i32 noundef 1)
  store ptr %47, ptr %8, align 8
  %48 = load ptr, ptr %8, align 8
  %49 = icmp eq ptr %48, null
  br i1 %49, label %50, label %58

50:                                               ; preds = %36
  %51 = load ptr, ptr %5, align 8
  %52 = getelementptr inbounds nuw %struct.z_stream_s, ptr %51, i32 0, i32 9
  %53 = load ptr, ptr %52, align 8
  %54 = load ptr, ptr %5, align 8
  %55 = getelementptr inbounds nuw %struct.z_stream_s, ptr %54, i32 0, i32 10
  %56 = load ptr, ptr %55, align 8
  %57 = load ptr, ptr %7, align 8
  call void %53(ptr noundef %56, ptr noundef %57)
  store i32 -4, ptr %3, align 4
  br label %154

58:                                               ; preds = %36
  br label %59

59:                                               ; preds = %58, %31
  %60 = load ptr, ptr %4, align 8
  %61 = load ptr, ptr %5, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %60, ptr align 1 %61, i64 112, i1 false)
  %62 = load ptr, ptr %7, align 8
  %63 = load ptr, ptr %6, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %62, ptr align 1 %63, i64 7160, i1 false)
  %64 = load ptr, ptr %4, align 8
  %65 = load ptr, ptr %7, align 8
  %66 = getelementptr inbounds nuw %struct.inflate_state, ptr %65, i32 0, i32 0
  store ptr %64, ptr %66, align 8
  %67 = load ptr, ptr %6, align 8
  %68 = getelementptr inbounds nuw %struct.inflate_state, ptr %67, i32 0, i32 20
  %69 = load ptr, ptr %68, align 8
  %70 = load ptr, ptr %6, align 8
  %71 = getelementptr inbounds nuw %struct.inflate_state, ptr %70, i32 0, i32 31
  %72 = getelementptr inbounds [1444 x %struct.code], ptr %71, i64 0, i64 0
  %73 = icmp uge ptr %69, %72
  br i1 %73, label %74, label %117

74:                                               ; preds = %59
  %75 = load ptr, ptr %6, align 8
  %76 = getelementptr inbounds nuw %struct.inflate_state, ptr %75, i32 0, i32 20
  %77 = load ptr, ptr %76, align 8
  %78 = load ptr, ptr %6, align 8
  %79 = getelementptr inbounds nuw %struct.inflate_state, ptr %78, i32 0, i32 31
  %80 = getelementptr inbounds [1444 x %struct.code], ptr %79, i64 0, i64 0
  %81 = getelementptr inbounds %struct.code, ptr %80, i64 1444
  %82 = getelementptr inbounds %struct.code, ptr %81, i64 -1
  %83 = icmp ule ptr %77, %82
  br i1 %83, label %84, label %117

84:                                               ; preds = %74
  %85 = load ptr, ptr %7, align 8
  %86 = getelementptr inbounds nuw %struct.inflate_state, ptr %85, i32 0, i32 31
  %87 = getelementptr inbounds [1444 x %struct.code], ptr %86, i64 0, i64 0
  %88 = load ptr, ptr %6, align 8
  %89 = getelementptr inbounds nuw %struct.inflate_state, ptr %88, i32 0, i32 20
  %90 = load ptr, ptr %89, align 8
  %91 = load ptr, ptr %6, align 8
  %92 = getelementptr inbounds nuw %struct.inflate_state, ptr %91, i32 0, i32 31
  %93 = getelementptr inbounds [1444 x %struct.code], ptr %92, i64 0, i64 0
  %94 = ptrtoint ptr %90 to i64
  %95 = ptrtoint ptr %93 to i64
  %96 = sub i64 %94, %95
  %97 = sdiv exact i64 %96, 4
  %98 = getelementptr inbounds %struct.code, ptr %87, i64 %97
  %99 = load ptr, ptr %7, align 8
  %100 = getelementptr inbounds nuw %struct.inflate_state, ptr %99, i32 0, i32 20
  store ptr %98, ptr %100, align 8
  %101 = load ptr, ptr %7, align 8
  %102 = getelementptr inbounds nuw %struct.inflate_state, ptr %101, i32 0, i32 31
  %103 = getelementptr inbounds [1444 x %struct.code], ptr %102, i64 0, i64 0
  %104 = load ptr, ptr %6, align 8
  %105 = getelementptr inbounds nuw %struct.inflate_state, ptr %104, i32 0, i32 21
  %106 = load ptr, ptr %105, align 8
  %107 = load ptr, ptr %6, align 8
  %108 = getelementptr inbounds nuw %struct.inflate_state, ptr %107, i32 0, i32 31
  %109 = getelementptr inbounds [1444 x %struct.code], ptr %108, i64 0, i64 0
  %110 = ptrtoint ptr %106 to i64
  %111 = ptrtoint ptr %109 to i64
  %112 = sub i64 %110, %111
  %113 = sdiv exact i64 %112, 4
  %114 = getelementptr inbounds %struct.code, ptr %103, i64 %113
  %115 = load ptr, ptr %7, align 8
  %116 = getelementptr inbounds nuw %struct.inflate_state, ptr %115, i32 0, i32 21
  store ptr %114, ptr %116, align 8
  br label %117

117:                                              ; preds = %84, %74, %59
  %118 = load ptr, ptr %7, align 8
  %119 = getelementptr inbounds nuw %struct.inflate_state, ptr %118, i32 0, i32 31
  %120 = getelementptr inbounds [1444 x %struct.code], ptr %119, i64 0, i64 0
  %121 = load ptr, ptr %6, align 8
  %122 = getelementptr inbounds nuw %struct.inflate_state, ptr %121, i32 0, i32 28
  %123 = load ptr, ptr %122, align 8
  %124 = load ptr, ptr %6, align 8
  %125 = getelementptr inbounds nuw %struct.inflate_state, ptr %124, i32 0, i32 31
  %126 = getelementptr inbounds [1444 x %struct.code], ptr %125, i64 0, i64 0
  %127 = ptrtoint ptr %123 to i64
  %128 = ptrtoint ptr %126 to i64
  %129 = sub i64 %127, %128
  %130 = sdiv exact i64 %129, 4
  %131 = getelementptr inbounds %struct.code, ptr %120, i64 %130
  %132 = load ptr, ptr %7, align 8
  %133 = getelementptr inbounds nuw %struct.inflate_state, ptr %132, i32 0, i32 28
  store ptr %131, ptr %133, align 8
  %134 = load ptr, ptr %8, align 8
  %135 = icmp ne ptr %134, null
  br i1 %135, label %136, label %147

136:                                              ; preds = %117
  %137 = load ptr, ptr %6, align 8
  %138 = getelementptr inbounds nuw %struct.inflate_state, ptr %137, i32 0, i32 10
  %139 = load i32, ptr %138, align 8
  %140 = shl i32 1, %139
  store i32 %140, ptr %9, align 4
  %141 = load ptr, ptr %8, align 8
  %142 = load ptr, ptr %6, align 8
  %143 = getelementptr inbounds nuw %struct.inflate_state, ptr %142, i32 0, i32 14
  %144 = load ptr, ptr %143, align 8
  %145 = load i32, ptr %9, align 4
  %146 = zext i32 %145 to i64
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %141, ptr align 1 %144, i64 %146, i1 false)
  br label %147

147:                                              ; preds = %136, %117
  %148 = load ptr, ptr %8, align 8
  %149 = load ptr, ptr %7, align 8
  %150 = getelementptr inbounds nuw %struct.inflate_state, ptr %149, i32 0, i32 14
  store ptr %148, ptr %150, align 8
  %151 = load ptr, ptr %7, align 8
  %152 = load ptr, ptr %4, align 8
  %153 = getelementptr inbounds nuw %struct.z_stream_s, ptr %152, i32 0, i32 7
  store ptr %151, ptr %153, align 8
  store i32 0, ptr %3, align 4
  br label %154

154:                                              ; preds = %147, %50, %30, %16
  %155 = load i32, ptr %3, align 4
  ret i32 %155
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateUndermine(ptr noundef %0, i32 noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  %7 = load ptr, ptr %4, align 8
  %8 = call i32 @inflateStateCheck(ptr noundef %7)
  %9 = icmp ne i32 %8, 0
  br i1 %9, label %10, label %11

10:                                               ; preds = %2
  store i32 -2, ptr %3, align 4
  br label %18

11:                                               ; preds = %2
  %12 = load ptr, ptr %4, align 8
  %13 = getelementptr inbounds nuw %struct.z_stream_s, ptr %12, i32 0, i32 7
  %14 = load ptr, ptr %13, align 8
  store ptr %14, ptr %6, align 8
  %15 = load i32, ptr %5, align 4
  %16 = load ptr, ptr %6, align 8
  %17 = getelementptr inbounds nuw %struct.inflate_state, ptr %16, i32 0, i32 32
  store i32 1, ptr %17, align 8
  store i32 -3, ptr %3, align 4
  br label %18

18:                                               ; preds = %11, %10
  %19 = load i32, ptr %3, align 4
  ret i32 %19
}

; Function Attrs: noinline nounwind uwtable
define dso_local i32 @inflateValidate(ptr noundef %0, i32 noundef %1) #0 {
  %3 = alloca i32, align 4
  %4 = alloca ptr, align 8
  %5 = alloca i32, align 4
  %6 = alloca ptr, align 8
  store ptr %0, ptr %4, align 8
  store i32 %1, ptr %5, align 4
  %7 = load ptr, ptr %4, align 8
  %8 = call i32 @inflateStateCheck(ptr noundef %7)
  %9 = icmp ne i32 %8, 0
  br i1 %9, label %10, label %11

10:                                               ; preds = %2
  store i32 -2, ptr %3, align 4
  br label %33

11:                                               ; preds = %2
  %12 = load ptr, ptr %4, align 8
  %13 = getelementptr inbounds nuw %struct.z_stream_s, ptr %12, i32 0, i32 7
  %14 = load ptr, ptr %13, align 8
  store ptr %14, ptr %6, align 8
  %15 = load i32, ptr %5, align 4
  %16 = icmp ne i32 %15, 0
  br i1 %16, label %17, label %27

17:                                               ; preds = %11
  %18 = load ptr, ptr %6, align 8
  %19 = getelementptr inbounds nuw %struct.inflate_state, ptr %18, i32 0, i32 3
  %20 = load i32, ptr %19, align 8
  %21 = icmp ne i32 %20, 0
  br i1 %21, label %22, label %27

22:                                               ; preds = %17
  %23 = load ptr, ptr %6, align 8
  %24 = getelementptr inbounds nuw %struct.inflate_state, ptr %23, i32 0, i32 3
  %25 = load i32, ptr %24, align 8
  %26 = or i32 %25, 4
  store i32 %26, ptr %24, align 8
  br label %32

27:                                               ; preds = %17, %11
  %28 = load ptr, ptr %6, align 8
  %29 = getelementptr inbounds nuw %struct.inflate_state, ptr %28, i32 0, i32 3
  %30 = load i32, ptr %29, align 8
  %31 = and i32 %30, -5
  store i32 %31, ptr %29, align 8
  br label %32

32:                                               ; preds = %27, %22
  store i32 0, ptr %3, align 4
  br label %33

33:                                               ; preds = %32, %10
  %34 = load i32, ptr %3, align 4
  ret i32 %34
}

; Function Attrs: noinline nounwind uwtable
define dso_local i64 @inflateMark(ptr noundef %0) #0 {
  %2 = alloca i64, align 8
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i64 -65536, ptr %2, align 8
  br label %46

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 33
  %15 = load i32, ptr %14, align 4
  %16 = sext i32 %15 to i64
  %17 = shl i64 %16, 16
  %18 = load ptr, ptr %4, align 8
  %19 = getelementptr inbounds nuw %struct.inflate_state, ptr %18, i32 0, i32 1
  %20 = load i32, ptr %19, align 8
  %21 = icmp eq i32 %20, 16195
  br i1 %21, label %22, label %26

22:                                               ; preds = %9
  %23 = load ptr, ptr %4, align 8
  %24 = getelementptr inbounds nuw %struct.inflate_state, ptr %23, i32 0, i32 17
  %25 = load i32, ptr %24, align 4
  br label %42

26:                                               ; preds = %9
  %27 = load ptr, ptr %4, align 8
  %28 = getelementptr inbounds nuw %struct.inflate_state, ptr %27, i32 0, i32 1
  %29 = load i32, ptr %28, align 8
  %30 = icmp eq i32 %29, 16204
  br i1 %30, label %31, label %39

31:                                               ; preds = %26
  %32 = load ptr, ptr %4, align 8
  %33 = getelementptr inbounds nuw %struct.inflate_state, ptr %32, i32 0, i32 34
  %34 = load i32, ptr %33, align 8
  %35 = load ptr, ptr %4, align 8
  %36 = getelementptr inbounds nuw %struct.inflate_state, ptr %35, i32 0, i32 17
  %37 = load i32, ptr %36, align 4
  %38 = sub i32 %34, %37
  br label %40

39:                                               ; preds = %26
  br label %40

40:                                               ; preds = %39, %31
  %41 = phi i32 [ %38, %31 ], [ 0, %39 ]
  br label %42

42:                                               ; preds = %40, %22
  %43 = phi i32 [ %25, %22 ], [ %41, %40 ]
  %44 = zext i32 %43 to i64
  %45 = add nsw i64 %17, %44
  store i64 %45, ptr %2, align 8
  br label %46

46:                                               ; preds = %42, %8
  %47 = load i64, ptr %2, align 8
  ret i64 %47
}

; Function Attrs: noinline nounwind uwtable
define dso_local i64 @inflateCodesUsed(ptr noundef %0) #0 {
  %2 = alloca i64, align 8
  %3 = alloca ptr, align 8
  %4 = alloca ptr, align 8
  store ptr %0, ptr %3, align 8
  %5 = load ptr, ptr %3, align 8
  %6 = call i32 @inflateStateCheck(ptr noundef %5)
  %7 = icmp ne i32 %6, 0
  br i1 %7, label %8, label %9

8:                                                ; preds = %1
  store i64 -1, ptr %2, align 8
  br label %23

9:                                                ; preds = %1
  %10 = load ptr, ptr %3, align 8
  %11 = getelementptr inbounds nuw %struct.z_stream_s, ptr %10, i32 0, i32 7
  %12 = load ptr, ptr %11, align 8
  store ptr %12, ptr %4, align 8
  %13 = load ptr, ptr %4, align 8
  %14 = getelementptr inbounds nuw %struct.inflate_state, ptr %13, i32 0, i32 28
  %15 = load ptr, ptr %14, align 8
  %16 = load ptr, ptr %4, align 8
  %17 = getelementptr inbounds nuw %struct.inflate_state, ptr %16, i32 0, i32 31
  %18 = getelementptr inbounds [1444 x %struct.code], ptr %17, i64 0, i64 0
  %19 = ptrtoint ptr %15 to i64
  %20 = ptrtoint ptr %18 to i64
  %21 = sub i64 %19, %20
  %22 = sdiv exact i64 %21, 4
  store i64 %22, ptr %2, align 8
  br label %23

23:                                               ; preds = %9, %8
  %24 = load i64, ptr %2, align 8
  ret i64 %24
}

attributes #0 = { noinline nounwind uwtable "frame-pointer"="all" "min-legal-vector-width"="0" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
attributes #1 = { "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="x86-64" "target-features"="+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+x87" "tune-cpu"="generic" }
attributes #2 = { nocallback nofree nounwind willreturn memory(argmem: readwrite) }

!llvm.module.flags = !{!0, !1, !2, !3, !4}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 8, !"PIC Level", i32 2}
!2 = !{i32 7, !"PIE Level", i32 2}
!3 = !{i32 7, !"uwtable", i32 2}
!4 = !{i32 7, !"frame-pointer", i32 2}
!5 = distinct !{!5, !6}
!6 = !{!"llvm.loop.mustprogress"}
!7 = distinct !{!7, !6}
!8 = distinct !{!8, !6}
!9 = distinct !{!9, !6}
!10 = distinct !{!10, !6}
!11 = distinct !{!11, !6}
!12 = distinct !{!12, !6}
!13 = distinct !{!13, !6}
!14 = distinct !{!14, !6}
!15 = distinct !{!15, !6}
!16 = distinct !{!16, !6}
!17 = distinct !{!17, !6}
!18 = distinct !{!18, !6}
!19 = distinct !{!19, !6}
!20 = distinct !{!20, !6}
!21 = distinct !{!21, !6}
!22 = distinct !{!22, !6}
!23 = distinct !{!23, !6}
!24 = distinct !{!24, !6}
!25 = distinct !{!25, !6}
!26 = distinct !{!26, !6}
!27 = distinct !{!27, !6}
!28 = distinct !{!28, !6}
!29 = distinct !{!29, !6}
!30 = distinct !{!30, !6}
!31 = distinct !{!31, !6}
!32 = distinct !{!32, !6}
