"""Programs of several statements, as people write them: text, axes to draw, axes that follow from those."""

from collections.abc import Callable, Mapping, Sequence

Tied = Mapping[str, Callable[[Mapping[str, int]], int]]

CHAINS: Sequence[tuple[str, str, Tied]] = (
    ("M[b] max= X[b,i]; E[b,i] = exp(X[b,i] - M[b]); S[b] += E[b,i]; O[b,i] = E[b,i] / S[b]", "bi", {}),
    ("U[b] += X[b,i]; V[b] += X[b,i] * X[b,i]; O[b,i] = X[b,i] * U[b] + sqrt(V[b])", "bi", {}),
    ("C[m,n] += A[m,k] * B[k,n]; D[m,p] += relu(C[m,n]) * W[n,p]", "mnkp", {}),
    ("C[m,n] += A[m,k] * B[n,k]; M[m] max= C[m,n]; O[m,n] = max(C[m,n] - M[m], -1)", "mnk", {}),
    ("D[m] = relu(sum(A[m,k] * B[k])) + c[m]", "mk", {}),
    ("O[m,n] = X[m,n] * sum(Y[m,k] * Z[k,n])", "mnk", {}),
    ("O[] = sum(A[i] * B[i]) + max(D[j,k]) - min(D[j,k])", "ijk", {}),
    ("T[m,n] = relu(A[m,n]) + B[n]; U[m] += T[m,n]; O[m,n] = T[m,n] * U[m]; P[n] max= T[m,n]", "mn", {}),
    ("T[i] = relu(A[i]); O[i] = T[i] + pad(T[i - 1], 0) + pad(T[i + 1], 0.5)", "i", {}),
    ("T[i,j] = A[i,j] * B[j]; O[i] += T[i,j]; Q[i] max= pad(T[i - 1, j], -inf)", "ij", {}),
    ("O[r, a + b] = A[r,a] | relu(B[r,b]); S[r] += O[r,t] * W[t]", "rab", {"t": lambda s: s["a"] + s["b"]}),
    ("O[a + b] += A[a,k] * B[k] | v[b]; S[] max= O[t]", "abk", {"t": lambda s: s["a"] + s["b"]}),
    (
        "C[k,y] += pad(I[c,y+r-1],0) * W[k,c,r]; D[k,y] = relu(C[k,y] + b[k]); O[k,v] max= D[k,2*v+i]",
        "kcrvi",
        {"y": lambda s: 2 * (s["v"] - 1) + s["i"]},
    ),
    ("Q[h,q] += A[h,d] * W[d,q]; S[h,g] += Q[h,q] * K[g,q]; O[g] += exp(min(S[h,g], 1)) * V[h]", "hqdg", {}),
    (
        "P[k,2*y+r] += X[c,y] * W[c,k,r]; O[k,o] = relu(P[k,o+1] + b[k])",
        "kcyr",
        {"o": lambda s: 2 * s["y"] + s["r"] - 3},
    ),
    ("P[i+j] += A[i] * B[j]; Q[p+k] += P[p] * C[k]; M[] max= Q[q]", "ijk", {}),
    ("T[i] = relu(A[i]); U[3*i] = T[i]; O[u] = U[u] + 0.5", "i", {}),
    ("L[m] *= max(A[m,k], 0.75); O[] += L[m]; P[m] min= A[m,k] - L[m]", "mk", {}),
)
