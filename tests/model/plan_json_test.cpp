#include <nlohmann/json.hpp>

#include "hpclaunch/plan.h"
#include "render/plans.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace hpclaunch;
using nlohmann::json;

TEST_CASE("plans as JSON", "[model][plan_json]") {
  test::check_golden("model/two_ranks.json", plan_to_json(test::two_ranks().plan));
  test::check_golden("model/two_nodes.json", plan_to_json(test::two_nodes().plan));
  test::check_golden("model/uneven.json", plan_to_json(test::uneven().plan));
}

TEST_CASE("what programs read out of it", "[model][plan_json]") {
  const Plan plan = test::uneven().plan;
  const json got = json::parse(plan_to_json(plan));
  CHECK(got["schema"] == 1);
  CHECK(got["world_size"] == plan.world_size());
  int ranks = 0;
  for (const json& run : got["layout"]) {
    CHECK(run["first_rank"] == ranks);
    CHECK(run["ranks_per_node"] ==
          got["classes"][run["node_class"].get<std::size_t>()]["ranks"].size());
    ranks += run["nodes"].get<int>() * run["ranks_per_node"].get<int>();
  }
  CHECK(ranks == plan.world_size());
  CHECK(got["classes"][0]["ranks"][1]["cpus"] == "4-7,12-15");
  CHECK(got["classes"][1]["ranks"][0]["numa"].is_null());
}

TEST_CASE("every kind of value", "[model][plan_json]") {
  Plan plan = test::two_ranks().plan;
  plan.environment.settings = {
      {"A", {{Layer::builtin, Unset{}, {}, ""}}},
      {"B", {{Layer::computed, RankFact::local_size, {"f", 3, 4, "/p"}, "w"}}},
      {"C", {{Layer::computed, PerRank{{{"x", "\xff"}, {"y"}}}, {"f"}, "w"}}}};
  const json env = json::parse(plan_to_json(plan))["env"];
  CHECK(env[0]["value"].is_null());
  CHECK(env[0]["history"][0]["where"].is_null());
  CHECK(env[1]["value"] == json{{"fact", "local-size"}});
  CHECK(env[1]["history"][0]["where"] ==
        json{{"file", "f"}, {"line", 3}, {"column", 4}, {"pointer", "/p"}});
  CHECK(env[2]["value"]["per_rank"] == json::parse(R"([["x", {"bytes": "/w=="}], ["y"]])"));
}

TEST_CASE("bytes that are not UTF-8 go as base64", "[model][plan_json]") {
  Plan plan = test::two_ranks().plan;
  plan.launch.command = {"/bin/echo", "\xff", "a\xfe", "ab\xfd", "abc\xfc"};
  plan.hosts.names = {"h\xff"};
  plan.environment.wire = "\xc3";
  const json got = json::parse(plan_to_json(plan));
  CHECK(got["command"][1]["bytes"] == "/w==");
  CHECK(got["command"][2]["bytes"] == "Yf4=");
  CHECK(got["command"][3]["bytes"] == "YWL9");
  CHECK(got["command"][4]["bytes"] == "YWJj/A==");
  CHECK(got["hosts"][0]["bytes"] == "aP8=");
}

TEST_CASE("secret names", "[model][plan_json]") {
  for (const char* name :
       {"HF_TOKEN", "hf_token", "GITHUBTOKEN", "TOKENS", "WANDB_API_KEY", "APIKEY", "PGPASSWORD",
        "MY_PASSWD", "AWS_SECRET_ACCESS_KEY", "SSH_PRIVATE_KEY_FILE", "DB_CREDENTIALS",
        "TOKENIZERS_TOKEN", "DB_PASS", "OPENAI_KEY", "GITHUB_PAT", "AUTHORIZATION", "SSH_AUTH",
        "SESSION_COOKIE"})
    CHECK(is_secret(name));
  for (const char* name :
       {"TOKENIZERS_PARALLELISM", "TOKENISER", "PATH", "KEY", "KEYBOARD", "OMP_NUM_THREADS",
        "PRIVATE", "ACCESS", "SSH_AUTH_SOCK", "BYPASS", "PASS_THROUGH", ""})
    CHECK_FALSE(is_secret(name));
}

TEST_CASE("URLs with passwords", "[model][plan_json]") {
  for (const char* url : {"http://user:word@proxy:3128", "postgres://u:p@h/db", "http://:p@h"})
    CHECK(is_secret("ANY", url));
  for (const char* url :
       {"http://proxy:3128", "http://user@proxy:3128/a", "http://h/a:b@c", "a:b@c", "", "://"})
    CHECK_FALSE(is_secret("ANY", url));
  CHECK(is_secret("HF_TOKEN", ""));
}

TEST_CASE("a secret of the user's is not written", "[model][plan_json]") {
  const std::string text = plan_to_json(test::two_ranks().plan);
  CHECK(text.find("hf_abcdef") == std::string::npos);
  Plan plan = test::two_ranks().plan;
  plan.environment.settings = {
      {"A_TOKEN",
       {{Layer::profile_default, "public", {"f"}, "w"}, {Layer::command_line, "x", {"f"}, "w"}}}};
  const json env = json::parse(plan_to_json(plan))["env"];
  CHECK(env[0]["history"][0]["value"] == "public");
  CHECK(env[0]["value"] == json{{"hidden", true}});
}
