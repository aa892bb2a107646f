// Sentences of the native program in Chinese. Reports hold them in English; here each form stands with its translation, and what
// has none stays English and is marked so. {0} is a number or a name as it stands, {0:} is said in Chinese itself where it can be.
// web/test/sentences.test.js holds every form against the program's source.
import { h, shortened } from "./dom";
import { language } from "./i18n";

export const SENTENCES: [string, string][] = [
  // Verdicts and findings (src/locate).
  ["{0:} is {1} off, {2} times the {3:} ({4:}).", "{0}偏差 {1}，是{3}的 {2} 倍（{4}）。"],
  ["{0:} is at least {1} off, {2} times the {3:} ({4:}).", "{0}偏差至少 {1}，是{3}的 {2} 倍（{4}）。"],
  ["it", "该数据"],
  ["row {0} of it", "其第 {0} 行"],
  ["column {0} of it", "其第 {0} 列"],
  ["{0} expected from inputs that are {1} off", "预期值 {0}（输入偏差 {1}）"],
  ["{0} expected from inputs that are right", "预期值 {0}（输入正确）"],
  ["what such operations do in general", "依据此类算子的一般情况"],
  ["what the same operation does in {0} other layer", "依据同一算子在其他 {0} 层的情况"],
  ["what the same operation does in {0} other layers", "依据同一算子在其他 {0} 层的情况"],
  ["what {0} operations of its kind do in this model", "依据本模型中 {0} 个同类算子的情况"],
  ["what the noise run has there", "依据噪声运行在该处的实测"],
  ["the largest error before it, since its inputs are not known", "输入未知，依据此前的最大误差"],
  ["every element is identical.", "所有元素相同。"],
  ["its shape is another one than golden's.", "形状与标杆不同。"],
  ["choices differ; rounding does that where two of golden's are close to each other.", "选择不同；标杆的两个候选接近时，舍入误差即可导致。"],
  ["NaN or infinities stand on one side only.", "仅一侧有 NaN 或无穷。"],
  ["NaN or infinities stand on one side only ({0}), as in what went into it.", "仅一侧有 NaN 或无穷（{0}），其输入也是如此。"],
  ["NaN or infinities stand on one side only ({0}), and in nothing that went into it.", "仅一侧有 NaN 或无穷（{0}），而其输入中没有。"],
  ["it is {0} off and follows from {1}.", "偏差 {0}，由 {1} 引起。"],
  ["it is {0} off; a few roundings of its type make up to {1}, and nothing is known of what went into it.", "偏差 {0}；该类型的几次舍入最多造成 {1}，其输入未知。"],
  ["What went into it is {0:} already: {1} computed that.", "其输入已{0}，由 {1} 计算得出。"],
  ["{0} off", "偏差 {0}"],
  ["of another shape", "是另一形状"],
  ["Computed again from its own inputs, {0} is {1} times farther off than rounding explains.", "用其自身输入重新计算，{0} 的偏差是舍入误差的 {1} 倍。"],
  ["Computed again from its own inputs, {0} is right: what it is given is wrong, which {1} computed.", "用其自身输入重新计算，{0} 是正确的；错在 {1} 算出的输入。"],
  ["Computed again from its own inputs, it is right: look at what it is given, its weights and parameters among that.", "用其自身输入重新计算结果正确：请检查其输入，包括权重和参数。"],
  ["row {0} chooses {1} in place of {2}, although the scores of the two are {3} apart and both runs' scores differ by {4} at most.", "第 {0} 行选了 {1} 而不是 {2}，但两者得分相差 {3}，而两次运行的得分最多相差 {4}。"],
  ["my choices are not those of the best scores", "待测侧的选择不是得分最高的"],
  // Causes (src/locate/causes*).
  ["my equals golden after {0:} (error falls from {1} to {2})", "标杆经如下改动后与待测一致：{0}（误差由 {1} 降至 {2}）"],
  ["setting it to 0", "置零"],
  ["changing its sign", "改变符号"],
  ["multiplying it by {0}", "乘以 {0}"],
  ["multiplying each row by a factor of its own ({0} to {1})", "每行乘以各自的系数（{0} 至 {1}）"],
  ["multiplying each column by a factor of its own ({0} to {1})", "每列乘以各自的系数（{0} 至 {1}）"],
  ["leaving out what is the same in all rows, a bias", "缺少各行相同的偏置"],
  ["adding the same to all rows, as a bias of another value or one that is added twice", "各行加上相同的值，例如偏置取值不同或加了两次"],
  ["leaving out the scale of the scores", "缺少得分的缩放"],
  ["scaling the scores by 1/sqrt of the head size", "得分按 1/√头维度 缩放"],
  ["scaling the scores by 1/sqrt of the hidden size", "得分按 1/√隐藏维度 缩放"],
  ["scaling the scores twice", "得分缩放两次"],
  ["doubling the scale of the scores", "得分缩放系数加倍"],
  ["halving the scale of the scores", "得分缩放系数减半"],
  ["turning neighbouring elements of heads instead of elements half a head apart", "旋转相邻元素，而不是相隔半个头的元素"],
  ["turning elements half a head apart instead of neighbouring ones", "旋转相隔半个头的元素，而不是相邻元素"],
  ["leaving out the rotary embedding", "缺少旋转位置编码"],
  ["leaving out the rotary embedding of queries", "查询缺少旋转位置编码"],
  ["leaving out the rotary embedding of keys", "键缺少旋转位置编码"],
  ["letting tokens see later ones", "token 看到了后面的 token"],
  ["letting tokens see the next one", "token 看到了下一个 token"],
  ["letting tokens see only the last {0}", "token 只看到最后 {0} 个"],
  ["letting tokens see padding", "token 看到了填充"],
  ["hiding later tokens", "屏蔽了后面的 token"],
  ["hiding each token from itself", "token 看不到自身"],
  ["giving heads of keys to queries in turn instead of in groups", "键的头轮流而不是成组分给查询"],
  ["giving each group of queries the next head of keys", "每组查询用了下一个键头"],
  ["leaving out the tokens of earlier calls", "缺少此前调用的 token"],
  ["reading {0:} from {1} of the cache", "从缓存的 {1} 读到{0}"],
  ["the token before", "前一个 token"],
  ["zeros", "零"],
  ["exchanging keys and values", "键与值互换"],
  ["exchanging queries and keys", "查询与键互换"],
  ["exchanging queries and values", "查询与值互换"],
  ["moving its heads", "头的顺序移动"],
  ["taking its row {0} everywhere", "各处都取其第 {0} 行"],
  ["putting its rows in another order (row {0} is golden's {1})", "行的顺序不同（第 {0} 行是标杆的第 {1} 行）"],
  ["putting its stretches of {0} columns in the order {1}", "每 {0} 列一段，顺序为 {1}"],
  ["moving its {0} stretches of {1} columns by {2}", "{0} 段（每段 {1} 列）移动了 {2}"],
  ["taking its {0} heads of {1} columns in turn from {2} groups", "{0} 个头（每个 {1} 列）轮流取自 {2} 组"],
  ["transposing its weights", "权重转置"],
  ["not subtracting the mean, as RMSNorm does", "不减均值，如 RMSNorm"],
  ["subtracting the mean, as LayerNorm does", "减去均值，如 LayerNorm"],
  ["leaving out the norm", "缺少归一化"],
  ["taking the norm of {0} columns at a time", "每 {0} 列归一化一次"],
  ["multiplying by the weight instead of 1 + weight", "乘以权重而不是 1 + 权重"],
  ["multiplying by 1 + weight instead of the weight", "乘以 1 + 权重而不是权重"],
  ["leaving out the weight of the norm", "缺少归一化的权重"],
  ["taking {0} as epsilon", "epsilon 取 {0}"],
  ["adding epsilon outside of the root", "在根号外加 epsilon"],
  ["rounding its input to {0}", "输入舍入为 {0}"],
  ["rounding the input to {0}", "输入舍入为 {0}"],
  ["rounding the frequencies of its angles to {0}", "旋转角的频率舍入为 {0}"],
  ["rounding positions to {0}", "位置舍入为 {0}"],
  ["rounding its angles to {0}", "旋转角舍入为 {0}"],
  ["rounding it to {0}", "舍入为 {0}"],
  ["rounding it to {0} with one scale for {1:}", "舍入为 {0}，{1}一个缩放系数"],
  ["each row", "每行"],
  ["each column", "每列"],
  ["all", "全部"],
  ["clamping it to {0:}", "截断到 {0}"],
  ["{0}, the largest {1}", "{0}（{1} 的最大值）"],
  ["setting to 0 what is below {0}", "小于 {0} 的值置零"],
  ["leaving out {0}", "缺少 {0}"],
  ["adding {0} twice", "{0} 加了两次"],
  ["adding once more {0}", "多加了一次 {0}"],
  ["adding nothing to {0}", "没有给 {0} 加任何值"],
  ["changing the sign of {0}", "{0} 的符号相反"],
  ["multiplying {0} by {1}", "{0} 乘以 {1}"],
  ["taking {0} instead of {1}", "用 {0} 代替 {1}"],
  ["taking {0} as its input", "以 {0} 作为输入"],
  ["only {0:} {1} hit (error {2}, {3} beside it)", "只有{0}受影响（误差 {2}，其旁 {3}）"],
  ["row {0}", "第 {0} 行"],
  ["column {0}", "第 {0} 列"],
  ["the stretch of rows {0} to {1}", "第 {0} 至 {1} 行"],
  ["{0} of {1} rows", "{1} 行中的 {0} 行"],
  ["{0} of {1} columns", "{1} 列中的 {0} 列"],
  ["the stretch of columns {0} to {1}", "第 {0} 至 {1} 列"],
  ["{0:}, head {1} of heads of {2}", "{0}（每头 {2} 列的第 {1} 头）"],
  ["{0:}, part {1} of {2}", "{0}（{2} 份中的第 {1} 份）"],
  // Pairing (src/match).
  ["by the place in the graph", "按图中的位置"],
  ["by the names of modules", "按module 名称"],
  ["by the names of operations", "按算子名称"],
  ["by the names that the graph's text gives to tensors", "按图文本中张量的名称"],
  ["by the types and order of operations", "按算子类型和顺序"],
  ["by the values of tensors, and {0:}", "按张量数值，并{0}"],
  ["both have the same name", "两侧名称相同"],
  ["both have the same name, but their types differ", "两侧名称相同，但类型不同"],
  ["both have the same place in the graph, but their types differ", "在图中位置相同，但类型不同"],
  ["types and order fit", "类型和顺序相符"],
  ["classes of modules and order fit", "module 的类和顺序相符"],
  ["another output of modules that correspond", "互相对应的 module 的另一输出"],
  ["types, order and sizes fit", "类型、顺序和大小相符"],
  ["the mapping file says so, and the order fits", "映射文件如此指定，且顺序相符"],
  ["both are what the layer puts out", "都是该层的输出"],
  ["they hold tensors that correspond", "其内容互相对应"],
  ["it is the input of what corresponds to {0}", "它是 {0} 所对应者的输入"],
  ["the data agree {0:}", "数据一致{0}"],
  ["({0}) in {1} of {2} {3} looked at", "（{0}），共看 {2} 处，{1} 处如此"],
  ["a part of it agrees {0:}", "部分数据一致{0}"],
  ["the sum of two golden tensors agrees ({0})", "标杆两个张量之和与之一致（{0}）"],
  ["no counterpart in {0:}.", "{0}没有对应数据。"],
  ["golden-path has no tensor of its size.", "标杆侧没有同样大小的张量。"],
  ["no tensor of golden-path agrees with it (the relative distance to the nearest is {0}).", "标杆侧没有与之一致的张量（最近者的相对距离为 {0}）。"],
  ["no tensor of my-path agrees with it.", "待测侧没有与之一致的张量。"],
  ["it cannot be recognised by its values: they are all the same, too few, or could not be read as rows of tokens.", "无法凭数值识别：数值全部相同、过少，或不能按 token 行读取。"],
  ["it holds quantised values or integers, and golden-path has none to compare with.", "其内容为量化值或整数，标杆侧没有可比的数据。"],
  ["the same data are compared elsewhere.", "相同的数据已在别处比对。"],
  ["the routers of the two runs gave no token to the same expert here.", "两次运行的路由在此没有把任何 token 分给同一专家。"],
  ["the other run has no such layer.", "另一次运行没有该层。"],
  ["the other run has no such tensor.", "另一次运行没有该张量。"],
  ["the other run has no such graph.", "另一次运行没有该图。"],
  ["golden-path has no operation of this name.", "标杆侧没有同名算子。"],
  ["{0:} has no such output of it.", "{0}没有该输出。"],
  ["{0:} has nothing of token {1}.", "{0}没有 token {1}。"],
  ["golden-path", "标杆侧"],
  ["my-path", "待测侧"],
  ["{0:} has no rank {1}.", "{0}没有 rank {1}。"],
  ["no round of the other run corresponds to its round.", "另一次运行没有与其对应的轮次。"],
  ["{0} was not recorded in this round.", "该轮次没有采集 {0}。"],
  ["its data were not kept.", "其数据未保存。"],
  ["the data of {0:} were not kept.", "{0}的数据未保存。"],
  ["the runs were fed different tokens from token {0} on.", "从 token {0} 起，两次运行的输入 token 不同。"],
  // Measuring (src/compare).
  ["{0:} data is repeated.", "{0}数据已重复。"],
  ["golden", "标杆"],
  ["my", "待测"],
  ["my data is de-quantised.", "待测数据已反量化。"],
  ["only the last row of each sequence is compared.", "只比对每个序列的最后一行。"],
  ["the rows that correspond are compared.", "只比对互相对应的行。"],
  ["the relative euclidean distance is at least {0}.", "相对欧氏距离至少为 {0}。"],
  ["there is nothing to compare.", "没有可比对的数据。"],
];

const MOST = 1000; // characters of a sentence that is looked at

interface Form {
  pattern: RegExp;
  isSaid: boolean[]; // of each place: {0:}
  to: string;
}
let forms: Form[] | undefined;

// A place holds no blank, unless it is said itself, is the last one or the form has few of them: no text takes long to look at.
function formsOf(): Form[] {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return SENTENCES.map(([from, to]) => {
    const parts = from.split(/(\{\d:?\})/);
    const any = (i: number) => parts[i].includes(":") || i >= parts.length - 2 || parts.length <= 5;
    const pattern = new RegExp("^" + parts.map((part, i) => (i % 2 === 0 ? escaped(part) : any(i) ? "(.+?)" : "([^ ]+?)")).join("") + "$");
    return { pattern, to, isSaid: parts.filter((_, i) => i % 2 === 1).map((part) => part.includes(":")) };
  });
}

function translated(text: string): string | undefined {
  if (text.length > MOST) return undefined;
  forms ??= formsOf();
  for (const { pattern, to, isSaid } of forms) {
    const found = pattern.exec(text);
    if (!found) continue;
    const place = (i: number) => (isSaid[i] ? translated(found[i + 1]) : undefined) ?? found[i + 1];
    return to.replace(/\{(\d)\}/g, (_, i) => place(Number(i)));
  }
  return undefined;
}

// Each sentence of a text, in Chinese where the page is and where it can be.
function pieces(text: string): { text: string; isEnglish: boolean }[] {
  if (language() === "en") return [{ text: text.replace(/^(it|its|row|column|every|choices|no|the|only)\b/, (word) => word[0].toUpperCase() + word.slice(1)), isEnglish: false }];
  const whole = translated(text);
  if (whole !== undefined) return [{ text: whole, isEnglish: false }];
  return text.split(/(?<=\.) /).map((each) => {
    const found = translated(each);
    return { text: found ?? each, isEnglish: found === undefined };
  });
}

// Within another sentence.
export function say(text: string): string {
  return language() === "en" ? text : pieces(text).map((each) => each.text).join(" ");
}

// The same as an element; what stays English is marked.
export function said(text: string, most = 1000): HTMLElement {
  return h("bdi", { class: "name" }, pieces(text).map((each, i) => [i > 0 && " ", each.isEnglish && each.text !== "" ? h("span", { lang: "en" }, shortened(each.text, most)) : shortened(each.text, most)]));
}

const CAUSES: Record<string, string> = {
  "accumulation": "累加精度", "activation": "激活函数", "channel-scale": "按列缩放", "choice": "选择错误", "doubled-residual": "残差加了两次", "epsilon": "epsilon 取值", "flush-to-zero": "小数值置零",
  "fused-order": "融合顺序", "heads-order": "头的顺序", "layernorm-vs-rmsnorm": "LayerNorm 与 RMSNorm 混用", "masked-region": "掩码区域", "missing-bias": "偏置", "missing-factor": "缺少乘数",
  "missing-norm": "缺少归一化", "missing-residual": "缺少残差", "missing-rope": "缺少旋转位置编码", "missing-weight": "缺少权重", "norm-group": "归一化分组", "one-channel": "单个通道", "one-expert": "单个专家", "one-head": "单个头", "one-row": "单行", "one-shard": "缺少一个分片", "overflow": "溢出",
  "permuted-axes": "轴的顺序", "plus-one": "权重加一", "position": "位置", "precision": "精度", "rope-pairing": "旋转编码的配对方式", "row-scale": "按行缩放", "saturation": "饱和", "scale": "缩放", "some-channels": "部分通道", "some-rows": "部分行", "sign": "符号",
  "stale-cache": "缓存过期", "token-order": "token 顺序", "token-shift": "token 错位", "transposed": "转置", "wrong-input": "输入错误", "wrong-residual": "残差错误", "wrong-weights": "权重错误", "zero": "置零",
};

export function causeName(name: string): string {
  return language() === "zh" && CAUSES[name] ? `${CAUSES[name]} (${name})` : name;
}
