// Secrets in command lines.
#include "hpclaunch/secret.h"

#include "hpclaunch/plan.h"
#include "hpclaunch/text.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

using Words = std::vector<std::string>;

std::string hidden(const Words& words) { return joined(without_secrets(words), "|"); }

}  // namespace

TEST_CASE("secrets of options in both spellings", "[model][secret]") {
  CHECK(hidden({"p", "--token", "X", "--lr", "1"}) == "p|--token|<hidden>|--lr|1");
  CHECK(hidden({"p", "--api-key=X", "y"}) == "p|--api-key=<hidden>|y");
  CHECK(hidden({"p", "-password", "a b"}) == "p|-password|<hidden>");
  CHECK(hidden({"p", "--hf_token=a=b", "--wandb.api_key", "-x9"}) ==
        "p|--hf_token=<hidden>|--wandb.api_key|<hidden>");
  CHECK(hidden({"env", "HF_TOKEN=abc", "++model.secret=s"}) ==
        "env|HF_TOKEN=<hidden>|++model.secret=<hidden>");
  CHECK(hidden({"--export=ALL,HF_TOKEN=abc"}) == "--export=ALL,HF_TOKEN=<hidden>");
}

TEST_CASE("secrets within texts", "[model][secret]") {
  CHECK(hidden({"sh", "-c", "exec p --token abc --lr 1; q"}) ==
        "sh|-c|exec p --token <hidden> --lr 1; q");
  CHECK(hidden({"sh", "-c", "A_TOKEN='a b' p --password=x"}) ==
        "sh|-c|A_TOKEN='<hidden>' p --password=<hidden>");
  CHECK(hidden({R"({"api_key":"a b","n":1,"secret": "c"})"}) ==
        R"({"api_key":"<hidden>","n":1,"secret": "<hidden>"})");
  CHECK(hidden({"-H", "Authorization: Bearer abc"}) == "-H|Authorization: <hidden>");
  CHECK(hidden({"sh", "-c", "p --token \"$HF_TOKEN\" --api-key $K"}) ==
        "sh|-c|p --token \"$HF_TOKEN\" --api-key $K");
}

TEST_CASE("URLs with passwords in words", "[model][secret]") {
  CHECK(hidden({"--db=postgres://u:p@h/d", "http://u:p@h"}) == "--db=<hidden>|<hidden>");
  CHECK(hidden({"sh", "-c", "get https://u:p@h/x y"}) == "sh|-c|get <hidden> y");
  CHECK(hidden({"https://h/?a=1&token=abc"}) == "https://h/?a=1&token=<hidden>");
  CHECK(hidden({"tcp://h:1", "u@h:1"}) == "tcp://h:1|u@h:1");
}

TEST_CASE("what only sounds secret is shown", "[model][secret]") {
  for (const Words& words : {Words{"p", "--max-tokens", "512", "--token-budget=4k"},
                             {"--pad-token", "<pad>"},
                             {"--use-auth-token", "--lr"},
                             {"--use_auth_token=True"},
                             {"--password", "123456"},
                             {"--api-key=1"},
                             {"data.prompt_key=prompt"},
                             {"--label-key", "text"},
                             {"--token-file", "/home/u/token"},
                             {"--password_file=/x"},
                             {"--tokenizer", "gpt2"},
                             {"app.secrets:main"},
                             {"--token"},
                             {"--token="},
                             {"token"},
                             {""},
                             {"-c", "f(token=None, key=x)"},
                             {"=", ":", "\"", "://", "--=", "-"}})
    CHECK(without_secrets(words) == words);
  CHECK(hidden({"--openai-key", "a1b2c3"}) == "--openai-key|<hidden>");
}

TEST_CASE("secrets of a text that a shell runs", "[model][secret]") {
  const auto shown = [](const Words& words, const std::vector<std::string>& env) {
    std::string text;
    for (const auto& [word, parts] :
         hpclaunch::secret_references(words, hpclaunch::EnvSnapshot(env), "say")) {
      text += word + " =>";
      for (const hpclaunch::LatePart& part : parts)
        text += " " + (part.late ? "[" + part.text + "]" : part.text);
      text += "\n";
    }
    return text;
  };
  CHECK(shown({"--api-key", "a1b2c3", "--x", "y"}, {}) == "a1b2c3 => [${API_KEY:?say}]\n");
  CHECK(shown({"--api-key=a1b2c3"}, {}) == "--api-key=a1b2c3 => --api-key= [${API_KEY:?say}]\n");
  CHECK(shown({"--token", "hunter2"}, {"HF_TOKEN=hunter2"}) == "hunter2 => [${HF_TOKEN:?say}]\n");
  CHECK(shown({"--token", "hunter2"}, {"HF_TOKEN=other"}) == "hunter2 => [${TOKEN:?say}]\n");
  CHECK(shown({"--token", "one1", "--token", "two2"}, {}) ==
        "one1 => [${TOKEN:?say}]\ntwo2 => [${TOKEN_2:?say}]\n");
  CHECK(shown({"--steps", "10"}, {}).empty());
}

TEST_CASE("a name and its value: secret or not", "[model][secret]") {
  struct Case {
    const char* name;
    const char* value;
  };
  constexpr Case kSecret[] = {
      {"HF_TOKEN", "hf_abcdefghijk"},
      {"HF_TOKEN", "hunter2"},
      {"TOKENS", "a,b"},
      {"WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"},
      {"API_KEY", "s3cr3t"},
      {"DB_PASSWORD", "123456a"},
      {"PGPASSWORD", "letmein"},
      {"DB_PASS", "hunter"},
      {"GITHUB_PAT", "github_pat_11AAAAAAA0"},
      {"OPENAI_KEY", "sk-abc"},
      {"MY_SECRET", "x1y2"},
      {"AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"},
      {"SESSION_COOKIE", "abc=def"},
      {"SSH_AUTH", "x"},
      {"ID_TOKEN", "eyJhbGciOi"},
      {"HF_TOKEN", "1a2b3c4d"},
      {"HF_TOKEN", "12345x"},
      {"ANY", "hf_abcdefghijklmnopq"},  // it looks like one
      {"PAD_TOKEN", "hf_abcdefghijklmnopq"},
      {"BASE", "sk-ant-abcdefghi"},
      {"URL", "https://user:word@host/x"},
      {"DATA_API_KEY", "data"},
  };
  constexpr Case kPlain[] = {
      {"TRAIN_TOKENS", "300_000_000_000"},
      {"PAD_TOKEN", "<pad>"},
      {"PAD_TOKEN", "pad"},
      {"EOS_TOKEN", "</s>"},
      {"STOP_TOKENS", "[SEP]"},
      {"NUM_TOKENS", "4096"},
      {"MAX_TOKEN", "512"},
      {"MAX_TOKENS", "$((1024*4))"},
      {"TOKENS_PER_BATCH", "4M"},
      {"TOKENS", "1.5e9"},
      {"TOKENS", "300B"},
      {"TOKENS", "1,000,000"},
      {"TOKENS", "2048,4096"},
      {"TOKEN_BUDGET", "some"},
      {"MOE_TOKEN_DISPATCHER_TYPE", "alltoall"},
      {"USE_AUTH_TOKEN", "True"},
      {"HF_TOKEN", "<your token>"},
      {"HF_TOKEN", "your_token_here"},
      {"HF_TOKEN", "hf_xxxxxxxxxxxxxxxx"},
      {"HF_TOKEN", "..."},
      {"WANDB_API_KEY", "***"},
      {"WANDB_API_KEY", "{{wandb_key}}"},
      {"PROMPT_KEY", "source_prompt"},
      {"LABEL_KEY", "text"},
      {"INPUT_IMAGE_KEY", "jpg"},
      {"TOKENIZER", "gpt2"},
      {"TOKENIZERS_PARALLELISM", "false"},
      {"BASE", "sk-learn"},
      {"DB_PASSWORD", "123456"},
      {"MY_SECRET", "-0.5"},
      {"API_KEY", "<key>"},
      {"PATH", "/usr/bin"},
  };
  for (const Case& one : kSecret) {
    INFO(one.name << '=' << one.value);
    CHECK(is_secret(one.name, one.value));
    CHECK(hidden({"env", std::string(one.name) + '=' + one.value}) ==
          "env|" + std::string(one.name) + "=<hidden>");
  }
  for (const Case& one : kPlain) {
    INFO(one.name << '=' << one.value);
    CHECK_FALSE(is_secret(one.name, one.value));
    const Words words = {"env", std::string(one.name) + '=' + one.value};
    CHECK(without_secrets(words) == words);
  }
}

TEST_CASE("the key of wandb login", "[model][secret]") {
  CHECK(hidden({"wandb", "login", "a1b2"}) == "wandb|login|<hidden>");
  CHECK(hidden({"/usr/bin/wandb", "login", "--relogin", "a1b2"}) ==
        "/usr/bin/wandb|login|--relogin|<hidden>");
  CHECK(hidden({"bash", "-c", "wandb login a1b2 && python t.py"}) ==
        "bash|-c|wandb login <hidden> && python t.py");
  CHECK(hidden({"bash", "-c", "wandb login --relogin a1b2; q"}) ==
        "bash|-c|wandb login --relogin <hidden>; q");
  for (const Words& words : {Words{"wandb", "login"},
                             {"wandb", "login", "--relogin"},
                             {"wandb", "sync", "a1b2"},
                             {"bash", "-c", "wandb login && python t.py"},
                             {"bash", "-c", "wandb login $WANDB_API_KEY"},
                             {"bash", "-c", "wandb login"},
                             {"ssh", "login", "a1b2"}})
    CHECK(without_secrets(words) == words);
}
