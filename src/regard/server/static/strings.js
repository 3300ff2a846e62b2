// What the page of a server says: a key, English and Chinese.

// biome-ignore format: a line for each key, which tests read as JSON
export const SERVED = {
  "serve.title": ["Regard: what a model looks at", "Regard：模型关注什么"],
  "serve.target": ["Output to explain", "要解释的输出"],
  "serve.own": ["the model's own", "模型自己的输出"],
  "serve.run": ["Run", "运行"],
  "serve.beam": ["Beam", "束宽"],
  "serve.token": ["Token", "令牌"],
  "serve.token.none": ["This server asks for a token. Whoever started it has one: type it into the field “Token” above and press “Look”.", "这台服务器需要令牌。启动它的人有令牌：请填入上方的“令牌”栏，再按“查看”。"],
  "serve.token.wrong": ["That is not the token of this server. Ask whoever started it, type it into the field “Token” above and press “Look”.", "这不是这台服务器的令牌。请向启动它的人索取，填入上方的“令牌”栏，再按“查看”。"],
  "serve.look": ["Look", "查看"],
  "serve.looking": ["Looking…", "正在计算…"],
  "serve.routes": ["Routes", "接口"],
  "serve.metrics": ["Metrics", "指标"],
  "serve.type.translation": ["Type a text and press Enter: the page shows what the model looks at while it translates it.", "输入一段文本，按回车：网页展示模型翻译它时关注哪里。"],
  "serve.type.other": ["Type a text and press Enter: the page shows what the model says of it, and what it looks at.", "输入一段文本，按回车：网页展示模型的回答，以及它关注哪里。"],
  "serve.silent": ["The server does not answer. Is it still running?", "服务器没有响应。它还在运行吗？"],
  "serve.status": ["The server answered with {status}.", "服务器返回 {status}。"],
};
