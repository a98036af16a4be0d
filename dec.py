import time, msgspec, json
from typing import Any
data=open('/tmp/w/items.jsonl','rb').read(); lines=data.split(b'\n')[:-1]; n=len(lines)
class Row(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    task_id:str|None=None
    agent_name:str|None=None
    agent_role:str|None=None
    question:str|None=None
    agent_response:str|None=None
    ground_truth:str|None=None
    tool_calls:list[Any]|None=None
    system_prompt:str|None=None
    metadata:dict[str,Any]|None=None
    model_name:str|None=None
def best(name,f,n=n):
    b=9e9
    for _ in range(7):
        s=time.process_time(); f(); b=min(b,time.process_time()-s)
    print(name, round(b/n*1e6,2))
D=msgspec.json.Decoder
d=D(Row); a=D(); r=D(dict[str,msgspec.Raw]); da=D(dict[str,Any])
best('typed lines',lambda:d.decode_lines(data))
best('typed each',lambda:[d.decode(x) for x in lines])
best('split+typed each',lambda:[d.decode(x) for x in data.split(b'\n') if x])
def lazy():
    dec=d.decode
    for x in data.split(b'\n'):
        x=x.strip()
        if x:
            try: dec(x)
            except msgspec.ValidationError: pass
best('split strip try typed each nohold',lazy)
best('any each',lambda:[a.decode(x) for x in lines])
best('any each nohold',lambda:[0 for x in lines if a.decode(x) is None])
best('dictany nohold',lambda:[0 for x in lines if da.decode(x) is None])
best('raw dict nohold',lambda:[0 for x in lines if r.decode(x) is None])
best('json.loads',lambda:[0 for x in lines if json.loads(x) is None])
class Fn(msgspec.Struct,gc=False,forbid_unknown_fields=True): name:str; arguments:str|None=None
class Call(msgspec.Struct,gc=False,forbid_unknown_fields=True): id:str; type:str; function:Fn
class Msg(msgspec.Struct,gc=False,forbid_unknown_fields=True):
    role:str; content:str|None=None; timestamp:float|None=None; tool_calls:list[Call]|None=None; tool_call_id:str=''
class Rec(msgspec.Struct,gc=False,forbid_unknown_fields=True):
    id:str; messages:list[Msg]; model:str; tools:msgspec.Raw=msgspec.Raw(b''); ground_truth:str|None=None
data=open('/tmp/w/chats.jsonl','rb').read(); lines=data.split(b'\n')[:-1]; n2=len(lines)
c=D(Rec)
best('chats typed lines',lambda:c.decode_lines(data),n2)
best('chats typed nohold',lambda:[0 for x in lines if c.decode(x) is None],n2)
best('chats any nohold',lambda:[0 for x in lines if a.decode(x) is None],n2)
best('chats rawdict nohold',lambda:[0 for x in lines if r.decode(x) is None],n2)
best('chats json.loads',lambda:[0 for x in lines if json.loads(x) is None],n2)
