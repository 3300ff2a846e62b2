// What can be moved in the course's pages: <div class="try" data-try="NAME"></div>.
// A plain script, since modules are not loaded from a disk.
(() => {
  // biome-ignore lint/suspicious/noRedundantUseStrict: no module
  "use strict";
  const isChinese = document.documentElement.lang.startsWith("zh");
  const say = (english, chinese) => (isChinese ? chinese : english);

  // ---- the mathematics, on plain arrays ----
  const softmax = (scores, visible = scores.map(() => true)) => {
    const top = Math.max(...scores.filter((_, i) => visible[i]));
    const powers = scores.map((score, i) => (visible[i] ? Math.exp(score - top) : 0));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => (total ? power / total : 0));
  };
  // Scores whose softmax weighs a key at a distance, all of one width.
  const KERNELS = {
    gaussian: { name: say("Gaussian", "高斯核"), score: (d, w) => (-d * d) / (2 * w * w) },
    laplace: { name: say("Laplace", "拉普拉斯核"), score: (d, w) => -Math.abs(d) / w },
    box: { name: say("Box", "方窗"), score: (d, w) => (Math.abs(d) <= w ? 0 : -Infinity) },
    epanechnikov: {
      name: "Epanechnikov",
      score: (d, w) => (Math.abs(d) < w ? Math.log(1 - (d / w) ** 2) : -Infinity),
    },
  };
  const kernelWeights = (query, keys, kernel, width) => {
    const scores = keys.map((key) => KERNELS[kernel].score(query - key, width));
    return softmax(scores, scores.map(Number.isFinite));
  };
  const mix = (weights, values) => weights.reduce((sum, w, i) => sum + w * values[i], 0);

  // ---- drawing ----
  const SVG = "http://www.w3.org/2000/svg";
  const node = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const picture = (root, width, height, label) => {
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    root.append(svg);
    return svg;
  };
  const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x} ${y}`).join("");
  const slider = (root, name, [from, to, step, value], changed) => {
    const label = document.createElement("label");
    const words = document.createElement("span");
    const input = document.createElement("input");
    const output = document.createElement("output");
    words.textContent = name;
    Object.assign(input, { type: "range", min: from, max: to, step, value });
    output.textContent = value;
    input.addEventListener("input", () => {
      output.textContent = input.value;
      changed();
    });
    label.append(words, input, output);
    root.append(label);
    return () => Number(input.value);
  };
  const choice = (root, name, options, changed) => {
    const label = document.createElement("label");
    const words = document.createElement("span");
    const select = document.createElement("select");
    words.textContent = name;
    Object.entries(options).forEach(([value, text]) => select.append(new Option(text, value)));
    select.addEventListener("change", changed);
    label.append(words, select);
    root.append(label);
    return () => select.value;
  };
  const bars = (svg, names, weights, [width, height]) => {
    const step = width / names.length;
    const drawn = names.flatMap((name, i) => {
      const high = weights[i] * (height - 50);
      const x = (i + 0.5) * step;
      return [
        node("rect", { class: "bar", x: x - step * 0.3, y: height - 25 - high, width: step * 0.6, height: high }),
        node("text", { x, y: height - 30 - high, "text-anchor": "middle" }, weights[i].toFixed(2)),
        node("text", { x, y: height - 8, "text-anchor": "middle" }, name),
      ];
    });
    svg.replaceChildren(...drawn);
  };

  // ---- chapter 1: what stands out, and what one wants ----
  const cues = (root) => {
    const names = say("newspaper paper coffee notebook book", "报纸 论文 咖啡 笔记本 书").split(" ");
    const keys = JSON.parse(root.dataset.example);
    const draw = () => {
      const scores = keys.map(([red, read]) => red * salience() + read * will());
      bars(svg, names, softmax(scores), [600, 200]);
    };
    const salience = slider(root, say("what stands out counts", "显眼的程度有多重要"), [0, 8, 0.5, 4], draw);
    const will = slider(root, say("I want to read", "想看书的意愿"), [0, 8, 0.5, 0], draw);
    const svg = picture(root, 600, 200, say("weights of five things", "五样东西的权重"));
    draw();
  };

  // ---- chapter 2: kernel regression ----
  const truth = (x) => 2 * Math.sin(x) + x ** 0.8;
  const kernel = (root) => {
    const X = (x) => 30 + x * 110;
    const Y = (y) => 190 - y * 36;
    const points = JSON.parse(root.dataset.example);
    const keys = points.map(([x]) => x);
    const values = points.map(([, y]) => y);
    const inputs = Array.from({ length: 101 }, (_, i) => i / 20);
    const draw = () => {
      const at = (x) => mix(kernelWeights(x, keys, score(), width()), values);
      const weights = kernelWeights(query(), keys, score(), width());
      const seen = inputs.filter((x) => kernelWeights(x, keys, score(), width()).some((w) => w > 0));
      svg.replaceChildren(
        node("path", { class: "truth", d: line(inputs.map((x) => [X(x), Y(truth(x))])) }),
        node("path", { class: "fit", d: line(seen.map((x) => [X(x), Y(at(x))])) }),
        node("line", { class: "query", x1: X(query()), x2: X(query()), y1: 5, y2: 290 }),
        node("line", { class: "axis", x1: X(0), x2: X(5), y1: 290, y2: 290 }),
        ...points.map(([x, y], i) =>
          node("circle", {
            class: "point",
            cx: X(x),
            cy: Y(y),
            r: 2 + 14 * Math.sqrt(weights[i]),
            opacity: 0.35 + 0.65 * Math.min(1, 10 * weights[i]),
          }),
        ),
        ...keys.map((x, i) =>
          node("rect", { class: "bar", x: X(x) - 1.5, width: 3, y: 290 - 250 * weights[i], height: 250 * weights[i] }),
        ),
        node(
          "text",
          { x: 300, y: 308, "text-anchor": "middle" },
          say("the weights of this query, key by key", "这个查询给每个键的权重"),
        ),
        node(
          "text",
          { x: Math.min(X(query()) + 6, 480), y: 16 },
          `f(${query().toFixed(2)}) = ${at(query()).toFixed(2)}`,
        ),
      );
    };
    const names = Object.fromEntries(Object.entries(KERNELS).map(([key, each]) => [key, each.name]));
    const score = choice(root, say("score", "打分函数"), names, draw);
    const width = slider(root, say("bandwidth", "带宽"), [0.05, 3, 0.05, 1], draw);
    const query = slider(root, say("query x", "查询 x"), [0, 5, 0.05, 2], draw);
    const svg = picture(root, 600, 315, say("points, truth, fit and weights", "样本、真实曲线、拟合与权重"));
    draw();
  };

  // ---- chapter 2: gradient descent on one parameter ----
  // The sum of squared errors when each point is answered by the others.
  const leftOut = (points, w) =>
    points.reduce((sum, [x, y], i) => {
      const scores = points.map(([other]) => -(((x - other) * w) ** 2) / 2);
      const weights = softmax(
        scores,
        points.map((_, j) => j !== i),
      );
      const answer = mix(
        weights,
        points.map(([, value]) => value),
      );
      return sum + (answer - y) ** 2;
    }, 0);
  const descent = (root) => {
    const known = JSON.parse(root.dataset.example);
    const loss = (w) => leftOut(known, w);
    const [least, most, steps] = [0.2, 40, 20];
    const X = (w) => 40 + (540 * Math.log(Math.min(most, Math.max(least, w)) / least)) / Math.log(most / least);
    const Y = (value) => 250 - (Math.min(value, 70) - 15) * 4;
    const inputs = Array.from({ length: 121 }, (_, i) => least * (most / least) ** (i / 120));
    const curve = line(inputs.map((w) => [X(w), Y(loss(w))]));
    const slope = (w) => (loss(w + 1e-4) - loss(w - 1e-4)) / 2e-4;
    const draw = () => {
      const path = [start()];
      while (path.length <= steps) path.push(path.at(-1) - 10 ** rate() * slope(path.at(-1)));
      const points = path.map((w) => [X(w), Y(loss(w))]);
      svg.replaceChildren(
        node("path", { class: "truth", d: curve }),
        node("path", { class: "fit", d: line(points), "stroke-dasharray": "4 3" }),
        ...points.map(([cx, cy], i) => node("circle", { class: "point", cx, cy, r: i ? 3.5 : 6 })),
        node("line", { class: "axis", x1: X(least), x2: X(most), y1: 262, y2: 262 }),
        ...[0.25, 1, 4, 16].map((w) => node("text", { x: X(w), y: 278, "text-anchor": "middle" }, `w = ${w}`)),
      );
      const name = say("rate", "学习率");
      const [one, last] = [path[1], path[steps]].map((w) => w.toFixed(2));
      summary.textContent = say(
        `${name} ${(10 ** rate()).toPrecision(2)}: slope ${slope(path[0]).toFixed(1)}, so the first step ends at w = ${one}; after ${steps} steps w = ${last}, loss ${loss(path[steps]).toFixed(1)}.`,
        `${name} ${(10 ** rate()).toPrecision(2)}：斜率 ${slope(path[0]).toFixed(1)}，第一步走到 w = ${one}；${steps} 步以后 w = ${last}，损失 ${loss(path[steps]).toFixed(1)}。`,
      );
    };
    const rate = slider(root, say("rate, 10 to the power of", "学习率，10 的几次方"), [-3, 0, 0.1, -1.3], draw);
    const start = slider(root, say("begin at w", "出发点 w"), [0.5, 10, 0.5, 1], draw);
    const svg = picture(
      root,
      600,
      290,
      say("loss over w, and the path of gradient descent", "损失随 w 的变化，和梯度下降走的路"),
    );
    const summary = document.createElement("p");
    root.append(summary);
    draw();
  };

  // ---- chapter 3: a softmax with temperature and length ----
  const masked = (root) => {
    const names = ["k₁", "k₂", "k₃", "k₄", "k₅", "k₆"];
    const draw = () => {
      const visible = names.map((_, i) => i < length());
      const weights = softmax(
        scores.map((score) => score() / temperature()),
        visible,
      );
      bars(svg, names, weights, [600, 200]);
    };
    const scores = [2, 1, 0, -1, 3, 0.5].map((value, i) =>
      slider(root, say(`score of ${names[i]}`, `${names[i]} 的分数`), [-4, 4, 0.1, value], draw),
    );
    const temperature = slider(root, say("temperature", "温度"), [0.1, 10, 0.1, 1], draw);
    const length = slider(root, say("valid length", "有效长度"), [1, 6, 1, 6], draw);
    const svg = picture(root, 600, 200, say("weights of six keys", "六个键的权重"));
    draw();
  };

  // ---- chapter 4: the weights of one output word over 我爱中国, from one context to a choice ----
  const alignment = (root) => {
    const demo = JSON.parse(root.dataset.example); // as `regard predict --attention` writes it
    const inputs = demo.source_tokens;
    const learned = Object.fromEntries(demo.output_tokens.map((word, i) => [word, demo.attention[i]]));
    const draw = () => {
      const scores = learned[word()].map((weight) => Math.log(weight) * sharpness());
      bars(svg, inputs, softmax(scores), [600, 200]);
    };
    const names = Object.fromEntries(Object.keys(learned).map((key) => [key, key]));
    const word = choice(root, say("output word", "输出的词"), names, draw);
    const sharpness = slider(root, say("sharpness of the scores", "分数的倍数"), [0, 5, 0.1, 1], draw);
    const svg = picture(root, 600, 200, say("weights of four characters", "四个字的权重"));
    draw();
  };

  // ---- chapter 5: heads share the width ----
  const heads = (root) => {
    const draw = () => {
      const count = 2 ** power();
      const width = 512 / count;
      const cells = Array.from({ length: count }, (_, i) =>
        node("rect", {
          class: "bar",
          x: 10 + (i * 580) / count,
          y: 40,
          width: 580 / count - 2,
          height: 50,
          opacity: 0.55 + 0.45 * ((i + 1) % 2),
        }),
      );
      const facts = [
        say(
          `${count} heads of width ${width}: ${4 * 512 * 512} parameters, whatever their number`,
          `${count} 个头，每头宽 ${width}：参数总是 ${4 * 512 * 512} 个`,
        ),
        say(`${count} maps of N × M`, `N × M 的权重图：${count} 张`),
      ];
      svg.replaceChildren(
        node("text", { x: 300, y: 25, "text-anchor": "middle" }, "512"),
        ...cells,
        ...facts.map((fact, i) => node("text", { x: 300, y: 115 + 24 * i, "text-anchor": "middle" }, fact)),
      );
    };
    const power = slider(root, say("heads: 2 to the", "头数：2 的几次方"), [0, 5, 1, 3], draw);
    const svg = picture(root, 600, 150, say("heads side by side", "并排的头"));
    draw();
  };

  // ---- chapter 6: operations against length ----
  const cost = (root) => {
    const draw = () => {
      const n = 2 ** length();
      const d = 512;
      const each = {
        [say("convolution, k = 3", "卷积，k = 3")]: 3 * n * d * d,
        [say("recurrence", "循环")]: n * d * d,
        [say("self-attention", "自注意力")]: 2 * n * n * d,
        [say("restricted, r = 64", "限制，r = 64")]: 2 * Math.min(n, 2 * 64 + 1) * n * d,
      };
      const top = Math.max(...Object.values(each));
      const rows = Object.entries(each).flatMap(([name, operations], i) => [
        node("text", { x: 150, y: 28 + 30 * i, "text-anchor": "end" }, name),
        node("rect", {
          class: "bar",
          x: 160,
          y: 14 + 30 * i,
          width: Math.max(1, (330 * operations) / top),
          height: 20,
        }),
        node(
          "text",
          { x: 168 + (330 * operations) / top, y: 29 + 30 * i },
          `${(operations / 1e6).toLocaleString("en", { maximumFractionDigits: 0 })} M`,
        ),
      ]);
      svg.replaceChildren(...rows, node("text", { x: 300, y: 150, "text-anchor": "middle" }, `n = ${n}, d = ${d}`));
    };
    const length = slider(root, say("length: 2 to the", "长度：2 的几次方"), [4, 15, 1, 7], draw);
    const svg = picture(root, 600, 160, say("multiplications of a layer", "一层的乘法次数"));
    draw();
  };

  // ---- chapter 7: one column of the sinusoidal encoding, and two positions ----
  const waves = (root) => {
    const draw = () => {
      const w = 1 / 10000 ** ((2 * column()) / 32);
      const positions = Array.from({ length: 241 }, (_, i) => i / 4);
      const X = (i) => 10 + (i * 580) / 60;
      const Y = (value) => 60 - 50 * value;
      const here = position();
      svg.replaceChildren(
        node("line", { class: "axis", x1: 10, x2: 590, y1: 60, y2: 60 }),
        node("path", { class: "fit", d: line(positions.map((i) => [X(i), Y(Math.sin(i * w))])) }),
        node("path", { class: "truth", d: line(positions.map((i) => [X(i), Y(Math.cos(i * w))])) }),
        node("line", { class: "query", x1: X(here), x2: X(here), y1: 5, y2: 115 }),
        node(
          "text",
          { x: 300, y: 140, "text-anchor": "middle" },
          `ω = ${w.toPrecision(3)}   sin(${here}ω) = ${Math.sin(here * w).toFixed(2)}   cos(${here}ω) = ${Math.cos(here * w).toFixed(2)}`,
        ),
      );
    };
    const column = slider(root, say("pair of columns j, of 16", "第 j 对列（共 16 对）"), [0, 15, 1, 2], draw);
    const position = slider(root, say("position i", "位置 i"), [0, 60, 1, 10], draw);
    const svg = picture(root, 600, 150, say("sine and cosine of a pair of columns", "一对列的正弦与余弦"));
    draw();
  };

  // ---- chapter 10: weights, and what leaving a word out does ----
  const effects = (root) => {
    const names = say("the good not very", "的 好 不 很").split(" ");
    const draw = () => {
      const weights = softmax(scores.map((score) => score()));
      const values = [0, 1.4, -1, 0.3];
      const output = mix(weights, values);
      const change = weights.map((w, i) => output - (output - w * values[i]) / (1 - w));
      const X = (i) => 60 + i * 150;
      const shapes = names.flatMap((name, i) => [
        node("rect", { class: "bar", x: X(i) - 32, y: 100 - 90 * weights[i], width: 30, height: 90 * weights[i] }),
        node("rect", {
          class: "point",
          opacity: 0.5,
          x: X(i) + 2,
          y: 100 - 90 * Math.max(0, change[i]),
          width: 30,
          height: 90 * Math.abs(change[i]),
        }),
        node(
          "text",
          { x: X(i), y: 195, "text-anchor": "middle" },
          `${name} ${weights[i].toFixed(2)} / ${change[i].toFixed(2)}`,
        ),
      ]);
      svg.replaceChildren(node("line", { class: "axis", x1: 10, x2: 590, y1: 100, y2: 100 }), ...shapes);
    };
    const scores = [1.7, 0.4, 0.7, 0].map((value, i) =>
      slider(root, say(`score of “${names[i]}”`, `“${names[i]}”的分数`), [-3, 3, 0.1, value], draw),
    );
    const svg = picture(root, 600, 205, say("weight / change when left out", "权重 / 去掉后的变化"));
    draw();
  };

  // ---- the literature: a table of which only rows with the words are shown ----
  document.querySelectorAll(".searchable").forEach((root) => {
    const rows = [...root.querySelectorAll("tbody tr")];
    root.querySelector("input").addEventListener("input", (event) => {
      const words = event.target.value.toLowerCase().split(/\s+/);
      rows.forEach((row) => {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      });
    });
  });

  // ---- chapter 6: a layer with all its numbers ----
  const layer = (root) => {
    const { words: names, embeddings: X, ...W } = JSON.parse(root.dataset.example);
    const colors = ["#00796b", "#e65100", "#3949ab"];
    const times = (rows, columns) =>
      rows.map((row) =>
        columns[0].map((_, j) =>
          mix(
            row,
            columns.map((c) => c[j]),
          ),
        ),
      );
    const titles = {
      query: say("query", "查询"),
      key: say("key", "键"),
      value: say("value", "值"),
      scores: say("scores", "分数"),
      weights: say("weights", "权重"),
      output: say("output", "输出"),
    };
    const draw = () => {
      X[Number(word())] = inputs.map((read) => read());
      const [query, key, value] = ["query", "key", "value"].map((name) => times(X, W[name]));
      const scores = query.map((q) => key.map((k) => mix(q, k) / 2));
      const weights = scores.map((row) => softmax(row));
      const tables = { query, key, value, scores, weights, output: times(weights, value) };
      const cells = (rows, at) => rows[at].map((number) => number.toFixed(2)).join("  ");
      table.replaceChildren(
        ...Object.entries(tables).flatMap(([name, rows]) =>
          names.map((text, at) => {
            const row = document.createElement("tr");
            const texts = [at ? "" : titles[name], text, cells(rows, at)];
            row.append(
              ...texts.map((content) => Object.assign(document.createElement("td"), { textContent: content })),
            );
            /** @type {HTMLElement} */ (row.children[1]).style.borderInlineStart = `4px solid ${colors[at]}`;
            return row;
          }),
        ),
      );
    };
    const restore = () => {
      const fields = root.querySelectorAll("input");
      X[Number(word())].forEach((number, i) => {
        fields[i].value = number;
        fields[i].nextElementSibling.textContent = number;
      });
      draw();
    };
    const word = choice(root, say("embedding of", "词向量"), { 0: names[0], 1: names[1], 2: names[2] }, restore);
    const inputs = X[0].map((number, i) =>
      slider(root, say(`number ${i + 1}`, `第 ${i + 1} 个数`), [-2, 2, 0.5, number], draw),
    );
    const table = document.createElement("table");
    root.append(table);
    draw();
  };

  const TRIES = { alignment, cost, cues, descent, effects, heads, kernel, layer, masked, waves };
  document.querySelectorAll(".try[data-try]").forEach((root) => TRIES[root.dataset.try](root));
  globalThis.course = { softmax, kernelWeights, mix, leftOut }; // for tests and the curious
})();
