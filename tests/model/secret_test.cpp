// Secrets in command lines.
#include "hpclaunch/secret.h"

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
  CHECK(hidden({"--password", "123456"}) == "--password|<hidden>");
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
