// Generates tokens greedily with transformers.js: `generate_web.mjs FOLDER DTYPE COUNT ID...`.
// Prints the ids, prompt and continuation, as JSON.
import { AutoModelForCausalLM, Tensor, env } from '@huggingface/transformers';

const [folder, dtype, count, ...ids] = process.argv.slice(2);
env.allowRemoteModels = false;
env.localModelPath = '';
// Without a dtype, config.json decides.
const options = dtype === 'config' ? {} : { dtype };
const model = await AutoModelForCausalLM.from_pretrained(folder, { local_files_only: true, ...options });
const shape = [1, ids.length];
const tensor = (values) => new Tensor('int64', BigInt64Array.from(values, BigInt), shape);
const made = await model.generate({
  input_ids: tensor(ids),
  attention_mask: tensor(ids.map(() => 1)),
  max_new_tokens: Number(count),
  do_sample: false,
});
console.log(JSON.stringify(made.tolist()[0].map(Number)));
