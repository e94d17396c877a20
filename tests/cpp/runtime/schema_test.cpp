// The parser, the printer and the queries of operator schemas. What upstream says stands in the expectations.
#include "runtime/schema.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "runtime/schema_info.h"
#include "runtime/schema_parser.h"

namespace tn {
namespace {

std::string printed(std::string_view text) { return parse_schema(text)->str(); }

std::string error_of(std::string_view text, bool allow_typevars = true) {
  try {
    parse_schema(text, allow_typevars);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The schema of one argument.
std::string printed_argument(const std::string& argument) {
  std::string text = printed("a::b(" + argument + ") -> ()");
  return text.substr(5, text.size() - 5 - 7);
}

TEST(Schema, RoundTrips) {
  for (const char* text : {
           "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
           "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
           "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
           "aten::_foreach_acos.out(Tensor[] self, *, Tensor(a!)[] out) -> ()",
           "aten::setdefault.str(Dict(str, t)(a!) self, str(b -> *) key, t(c -> *) default_value) -> t(*)",
           "aten::items.str(Dict(str, t) self) -> ((str, t)[])",
           "aten::wait(Future(t) self) -> t",
           "aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], int[2] dilation=1, "
           "SymInt groups=1) -> Tensor",
           "prim::Print(...) -> ()",
           "prim::tolist(...) -> ...",
           "c10d::send(Tensor[] tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, int dst, int tag) -> "
           "__torch__.torch.classes.c10d.Work",
           "aten::strip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
           "a::b() -> ()",
           "a::b(Tensor x) -> (Tensor y, Tensor z)",
           "a::b((int, Tensor?) x) -> ((int, int))",
       }) {
    EXPECT_EQ(printed(text), text);
  }
}

TEST(Schema, NormalisesWhatItPrints) {
  EXPECT_EQ(printed_argument("Tensor(a|b) x"), "Tensor(b|a) x");  // latest first, as upstream
  EXPECT_EQ(printed_argument("Tensor! x"), "Tensor($0! -> ) x");
  EXPECT_EQ(printed_argument("Tensor(a!)?[] x"), "Tensor?(a!)[] x");
  EXPECT_EQ(printed_argument("int?? x"), "int? x");
  EXPECT_EQ(printed_argument("Union(int, str, None) x"), "Union(int, NoneType, str) x");
  EXPECT_EQ(printed_argument("Union(int, None) x"), "int? x");
  EXPECT_EQ(printed_argument("ConstQuantizerPtr x"), "int x");
  EXPECT_EQ(printed("\n  foo::bar(Tensor x,  # a comment\n   int y) -> Tensor\n"),
            "foo::bar(Tensor x, int y) -> Tensor");
}

TEST(Schema, Defaults) {
  EXPECT_EQ(printed_argument("float x=1"), "float x=1.");
  EXPECT_EQ(printed_argument("float x=1e-5"), "float x=1.0000000000000001e-05");
  EXPECT_EQ(printed_argument("float x=1e22"), "float x=1e+22");
  EXPECT_EQ(printed_argument("float? x=1"), "float? x=1");
  EXPECT_EQ(printed_argument("int x=-9223372036854775808"), "int x=-9223372036854775808");
  EXPECT_EQ(printed_argument("int[2] x=[1,1]"), "int[2] x=1");
  EXPECT_EQ(printed_argument("int[1] x=3"), "int[1] x=[3]");
  EXPECT_EQ(printed_argument("SymInt[2] x=0"), "SymInt[2] x=[0, 0]");
  EXPECT_EQ(printed_argument("bool[2] x=True"), "bool[2] x=[True, True]");
  EXPECT_EQ(printed_argument("ScalarType? x=long"), "ScalarType? x=4");
  EXPECT_EQ(printed_argument("int x=Mean"), "int x=1");
  EXPECT_EQ(printed_argument("Scalar x=1j"), "Scalar x=0.+1.j");
  EXPECT_EQ(printed_argument("Device x='cuda:1'"), "Device x=cuda:1");
  EXPECT_EQ(printed_argument("str x='a\"b'"), "str x=\"a\\\"b\"");
  EXPECT_EQ(printed_argument("str x=None"), "str x=None");
}

TEST(Schema, ErrorsMarkThePlace) {
  EXPECT_EQ(error_of("foo::x(Tensor x"), "expected ) but found 'eof' here:\nfoo::x(Tensor x");
  EXPECT_EQ(error_of("a::b(Tensor x=1) -> ()"),
            "expected None but found 'number' here:\na::b(Tensor x=1) -> ()\n              ~ <--- HERE\n");
  EXPECT_EQ(error_of("a::b(Tensor if) -> ()"),
            "expected ident but found 'if' here:\na::b(Tensor if) -> ()\n            ~~ <--- HERE\n");
  EXPECT_EQ(error_of("a::b(int[] x=[a]) -> ()"),
            "\ninvalid numeric default value:\na::b(int[] x=[a]) -> ()\n               ~ <--- HERE\n");
  EXPECT_EQ(error_of(""), "expected ident but found 'eof' here:\n");
  EXPECT_EQ(error_of("$"), "expected a valid token but found '$' here:\n$");
  EXPECT_EQ(error_of("x::y(str s=\"open) -> ()"),
            "expected a valid token but found '\"' here:\nx::y(str s=\"open) -> ()\n           ~ <--- HERE\n");
  EXPECT_EQ(error_of("foo::x"), "Tried to parse a function schema but only the operator name was given");
  EXPECT_EQ(error_of("a::b.default(int x) -> ()"), "default is not a legal overload name for aten operators");
  EXPECT_EQ(error_of("a::b(Tensor x, int y=1, Tensor z) -> ()"),
            "Non-default positional argument follows default argument. Parameter z in a::b(Tensor x, int y=1, Tensor "
            "z) -> ()");
  EXPECT_EQ(error_of("a::b(__torch__.torch.classes.foo.Bar x) -> ()").substr(0, 75),
            "\nUnknown custom class type foo.Bar. Please ensure it is registered.:\na::b(_");
  EXPECT_NE(error_of("a::b(t x) -> ()", false).find("unknown type specifier"), std::string::npos);
  EXPECT_EQ(error_of("a::b(t x) -> ()", true), "no error");
  EXPECT_EQ(error_of("a::b(float x=1e400) -> ()"), "stod");
}

TEST(Schema, Fields) {
  SchemaRef schema =
      parse_schema("aten::foo.bar(SymInt[2]? size, *, ScalarType? dtype=None, Tensor(a!) out) -> Tensor(a!)");
  EXPECT_EQ(schema->name(), "aten::foo");
  EXPECT_EQ(schema->ns(), "aten");
  EXPECT_EQ(schema->overload_name(), "bar");
  EXPECT_TRUE(schema->is_mutable());
  EXPECT_FALSE(schema->is_view_op());
  const std::vector<Argument>& arguments = schema->arguments();
  ASSERT_EQ(arguments.size(), 3u);
  EXPECT_EQ(arguments[0].type->str(), "int[]?");
  EXPECT_EQ(arguments[0].real_type->str(), "SymInt[]?");
  EXPECT_EQ(arguments[0].real_type->annotation(), "Optional[List[int]]");
  EXPECT_EQ(arguments[0].size, 2);
  EXPECT_FALSE(arguments[0].kwarg_only);
  EXPECT_EQ(arguments[1].type, optional_type(simple_type(TypeKind::kInt)));
  EXPECT_EQ(arguments[1].real_type->annotation(), "Optional[ScalarType]");
  ASSERT_TRUE(arguments[1].default_value);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*arguments[1].default_value));
  EXPECT_TRUE(arguments[2].is_out());
  EXPECT_EQ(arguments[2].alias->before.names(), std::vector<std::string_view>{"a"});
  EXPECT_EQ(schema->argument_index("out"), 2u);
  EXPECT_FALSE(schema->argument_index("in"));
}

TEST(Schema, EqualityAndHash) {
  SchemaRef a = parse_schema("a::b(Tensor(a|b) x, int y=1) -> Tensor");
  SchemaRef b = parse_schema("a::b(Tensor(b|a) x, int y=1) -> Tensor");
  EXPECT_TRUE(*a == *b);
  EXPECT_EQ(a->hash(), b->hash());
  EXPECT_FALSE(*a == *parse_schema("a::b(Tensor(a|b) x, int y=2) -> Tensor"));
  EXPECT_FALSE(*a == *parse_schema("a::b(Tensor x, int y=1) -> Tensor"));
}

TEST(Schema, Compatibility) {
  auto forward = [](const char* now, const char* old) {
    std::string why;
    bool ok = parse_schema(now)->is_forward_compatible_with(*parse_schema(old), why);
    return ok ? "ok" : why;
  };
  EXPECT_EQ(forward("a::b(Tensor x, int y=1) -> ()", "a::b(Tensor x) -> ()"), "ok");
  EXPECT_EQ(forward("a::b(Tensor x, int y) -> ()", "a::b(Tensor x) -> ()"),
            "Function schema is not forward compatible since the new argument 'y' of type int did not provide a "
            "default value.");
  EXPECT_EQ(
      forward("a::b(Tensor x, int[] y=[]) -> ()", "a::b(Tensor x) -> ()"),
      "Function schema is not forward compatible since the new argument 'y' of type int[] has a container type as its "
      "default value.");
  EXPECT_EQ(forward("a::b(Tensor x, *, Tensor(a!) out) -> int", "a::b(Tensor x) -> int"),
            "Function schema should have the same number of out arguments");
  EXPECT_EQ(forward("a::b(Tensor x) -> Tensor", "a::b(Tensor x) -> ()"), "");
  auto backward = [](const char* now, const char* old) {
    return parse_schema(now)->is_backward_compatible_with(*parse_schema(old));
  };
  EXPECT_TRUE(backward("a::b(Tensor x, int y=1) -> ()", "a::b(Tensor x) -> ()"));
  EXPECT_FALSE(backward("a::b(Tensor x, int y=2) -> ()", "a::b(Tensor x, int y=1) -> ()"));
  EXPECT_FALSE(backward("a::b(Tensor x) -> ()", "a::b(Tensor x, int y=1) -> ()"));
}

TEST(SchemaTypes, AreInterned) {
  EXPECT_EQ(list_type(simple_type(TypeKind::kInt)), list_type(simple_type(TypeKind::kInt)));
  TypePtr pair[] = {simple_type(TypeKind::kInt), simple_type(TypeKind::kTensor)};
  EXPECT_EQ(tuple_type(pair), tuple_type(pair));
  EXPECT_EQ(var_type("t"), var_type("t"));
  EXPECT_NE(var_type("t"), var_type("t1"));
  EXPECT_EQ(simple_type(TypeKind::kList), nullptr);
}

TEST(SchemaTypes, Subtypes) {
  TypePtr integer = simple_type(TypeKind::kInt), number = simple_type(TypeKind::kNumber);
  EXPECT_TRUE(integer->is_subtype_of(number));
  EXPECT_TRUE(integer->is_subtype_of(optional_type(number)));
  EXPECT_FALSE(number->is_subtype_of(integer));
  EXPECT_FALSE(simple_type(TypeKind::kBool)->is_subtype_of(integer));
  EXPECT_FALSE(simple_type(TypeKind::kSymInt)->is_subtype_of(integer));
  EXPECT_TRUE(simple_type(TypeKind::kNone)->is_subtype_of(optional_type(integer)));
  EXPECT_FALSE(list_type(integer)->is_subtype_of(list_type(number)));  // lists are mutable, so invariant
  TypePtr ints[] = {integer}, numbers[] = {number};
  EXPECT_TRUE(tuple_type(ints)->is_subtype_of(tuple_type(numbers)));
  EXPECT_FALSE(rref_type(integer)->is_subtype_of(rref_type(number)));
  EXPECT_TRUE(future_type(integer)->is_subtype_of(future_type(number)));
}

TEST(SchemaInfo, ReadsAliasing) {
  SchemaInfo info(parse_schema("a::b(Tensor(a!) x, Tensor y, Tensor(b) z) -> (Tensor(a!), Tensor(b))"));
  SchemaSlot x{SchemaSlot::kInput, 0}, y{SchemaSlot::kInput, 1}, z{SchemaSlot::kInput, 2};
  SchemaSlot first{SchemaSlot::kOutput, 0}, second{SchemaSlot::kOutput, 1};
  EXPECT_TRUE(info.is_mutable());
  EXPECT_TRUE(info.is_mutable(x));
  EXPECT_FALSE(info.is_mutable(y));
  EXPECT_TRUE(info.may_alias(x, first));
  EXPECT_FALSE(info.may_alias(z, first));
  EXPECT_TRUE(info.may_alias(second, z));
  // When y is given the memory of x, it is written too.
  SchemaInfo::Pair same[] = {{0, 1}};
  info.set_values(same, {}, std::nullopt);
  EXPECT_TRUE(info.is_mutable(y));
  EXPECT_TRUE(info.may_alias(y, first));
  EXPECT_THROW(info.is_mutable({SchemaSlot::kInput, 7}), Error);
}

TEST(SchemaInfo, NormalisationsWriteInTraining) {
  SchemaInfo info(
      parse_schema("aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
                   "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)"));
  EXPECT_TRUE(info.is_mutable());
  info.set_values({}, {}, false);
  EXPECT_FALSE(info.is_mutable());
}

}  // namespace
}  // namespace tn
