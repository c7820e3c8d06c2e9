"""Programs of several statements that read one another's results in more than one way, of random sizes."""

import re

from hypothesis import strategies as st

from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program

CHAINS = {
    "softmax": "M[b] max= X[b,i]; S[b] += exp(X[b,i]-M[b]); Y[b,i] = exp(X[b,i]-M[b])/S[b]",
    "layer norm": "U[b] += X[b,i]; V[b] += (X[b,i]-0.1*U[b])*(X[b,i]-0.1*U[b]);"
    "Y[b,i] = (X[b,i]-0.1*U[b])/sqrt(V[b]+1)*g[i]",
    "two layers": "H[b,j] += X[b,i]*W[i,j]; R[b,j] = relu(H[b,j]+c[j]); Y[b,k] += R[b,j]*V[j,k]",
    "attention": "S[i,j] += Q[i,b]*K[j,b]; M[i] max= S[i,j]; E[i,j] = exp(S[i,j]-M[i]);"
    "Z[i] += E[i,j]; Y[i,b] += E[i,j]*V[j,b]; O[i,b] = Y[i,b]/Z[i]",
    "sums along both axes": "M[i] max= X[b,i]; Y[b,i] = X[b,i]-M[i]; T[b] += Y[b,i]; U[i] += Y[b,i];"
    "Z[i,b] = Y[b,i]*T[b]+U[i]",
    "a map, its square, its sum": "C[b,i] = A[b,i]+1; D[b,i] = C[b,i]*C[b,i]; E[b] += D[b,i];"
    "F[b,i] = D[b,i]-E[b]",
}


@st.composite
def chains(draw: st.DrawFn) -> Program:
    """Draw one of these programs."""
    text = CHAINS[draw(st.sampled_from(sorted(CHAINS)))]
    axes = sorted(set(re.findall(r"[\[,]([bijk])(?=[\],])", text)))
    return parse(text, {axis: draw(st.sampled_from([2, 3, 5, 8, 17, 20, 33])) for axis in axes})
