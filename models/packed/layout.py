"""Field layout of a packed lanes state: which fields a row has, how wide, and where.

A row is a sequence of 32-bit words; a field never straddles two words. Which fields exist depends
on what can matter to the future (docs/packed_engine.md argues each omission).
"""
import numpy as np
from . import kernel as k

def build(lanes, stages, layers, batches, moe=True, admission='ep_ordered', stand_in='standard', rooms='shared',
          arrivals='burst', phases=None, ties=False, capacity=None, ordered=True, fifo=True, symmetry=False, partial=False):
    g = np.zeros(k.G_SIZE, np.int64)
    L,S=lanes,stages
    g[k.LANES]=L; g[k.STAGES]=S; g[k.LAYERS]=layers if moe else 1; g[k.PHASES]=2 if rooms=='by_phase' and moe else 1
    g[k.ADMISSION]=['strict_fifo','lane_aware','ep_ordered','late_ticket'].index(admission)
    g[k.STAND_IN]=['standard','withdraw_joined','blocked_is_idle'].index(stand_in)
    g[k.MOE]=moe; g[k.CAPACITY]=capacity or L; g[k.TIES]=ties
    g[k.ORDERED]=ordered; g[k.FIFO]=fifo; g[k.SYMMETRY]=symmetry; g[k.PARTIAL]=partial; g[k.OPEN]=arrivals=='open'
    widths=[]
    def add(idx, n, bits):
        g[idx]=len(widths); widths.extend([bits]*n)
    inflight=[min(S,n) for n in batches]
    top = 1 + (3*layers if moe else 0)
    add(k.AT_STATUS, L*S, top.bit_length())
    add(k.AT_QUEUED, L*S, max(inflight).bit_length())
    add(k.AT_WAITING, L, max(batches).bit_length())
    add(k.AT_REQUESTS, L if g[k.OPEN] else 0, max(batches).bit_length())
    add(k.AT_SEALED, S if moe else 0, 1)
    if not moe: g[k.AT_SEALED]=0
    add(k.AT_ROOM, S*layers*g[k.PHASES] if moe else 0, L)
    g[k.FIFO_SLOTS]=sum(inflight) if fifo else 0
    add(k.AT_FIFO, S*g[k.FIFO_SLOTS], L.bit_length())
    g[k.PENDING_SLOTS]=sum(inflight) if ordered else 0
    add(k.AT_PENDING, g[k.PENDING_SLOTS], (L*S).bit_length())
    add(k.AT_FAILED, 1, 2)
    g[k.FIELDS]=len(widths)
    n=len(widths)
    if not moe: g[k.AT_SEALED]=n; n+=S
    for idx,c in [(k.AT_BUSY,S),(k.AT_WAVE,S),(k.AT_BACKLOG,S),(k.AT_FIFO_LENGTH,S),(k.AT_PENDING_LENGTH,1),(k.AT_REACHED,1),(k.AT_IN_FLIGHT,L),(k.AT_ADMITTED,L*S)]:
        g[idx]=n; n+=c
    g[k.SIZE]=n
    bits=np.zeros((len(widths),3),np.int64); word=0; used=0
    for f,b in enumerate(widths):
        if used+b>32: word+=1; used=0
        bits[f]=word,used,(1<<b)-1; used+=b
    ph=np.zeros((L,max(batches)+1),np.int64)
    if phases is not None and g[k.PHASES]==2:
        for l,p in enumerate(phases):
            for i,x in enumerate(p): ph[l,i]= x=='decode'
    return g,bits,ph,np.array(batches,np.int64),word+1
