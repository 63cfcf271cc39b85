"""A sales conversation on a realtime model: goals, product tools, an offer in mid-call.

    voxglove serve --config examples/sales_call/voxglove.yaml    talk to it in the browser
    python -m examples.sales_call.offer                          meanwhile: prices change
    python -m examples.sales_call.verify                         hold the conversation by a script

Run them in the repository's root, with OPENAI_API_KEY set; `--brain gemini` or `--brain gpt-live`,
and `--provider` of verify, take another provider. The call is fictional: nobody is phoned, nothing
is scheduled, no mail is sent.

program.py  what is sold, what is to be reached, and the agent
server.py   the factory of the agent of one call, for `voxglove serve`
"""
